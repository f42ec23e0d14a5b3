import type { Stats } from 'fs';
import { type Buffer as Bytes } from 'buffer';

type Env = typeof process;
interface Options {
  process: Env;
  eval: (code: string) => unknown;
}

/** Types are erased, so they may speak of anything. */
export default function names(args: { options: Options; stats: Stats; bytes: Bytes }): string[] {
  return Object.keys(args.options);
}
