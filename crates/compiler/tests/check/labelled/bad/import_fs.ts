import { readFileSync } from 'fs';

/** Reads a file. */
export default function read(args: { path: string }): string {
  return readFileSync(args.path, 'utf8');
}
