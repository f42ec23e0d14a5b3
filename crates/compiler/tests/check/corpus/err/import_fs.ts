import fs from 'fs';

/** Reads files. */
export default (args: { path: string }) => fs.readFileSync(args.path);
