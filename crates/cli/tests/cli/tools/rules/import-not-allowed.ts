import fs from 'fs';

/** Reads a file of the host. */
export default function read(args: { path: string }): string {
  return fs.readFileSync(args.path, 'utf8');
}
