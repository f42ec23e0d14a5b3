interface process {
  pid: number;
}
import type eval2 from './types';
namespace Bun {
  export type Version = string;
}

/** Type-only names do not bind values. */
export default () => [process.pid, Bun.version, eval2];
