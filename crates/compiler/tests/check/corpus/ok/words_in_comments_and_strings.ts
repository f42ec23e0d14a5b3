// process.exit(), eval('x'), require('fs'), globalThis.process, any, let x = 1
/**
 * Says `process.exit()` and `import fs from 'fs'` without doing it.
 * const cache = new Map(); cache.set('a', 42);
 */
export default function say(args: { name: string }): string {
  /* new Function('return process')() */
  return 'process.exit(); eval("1"); require("fs"); globalThis.process; Intl.NumberFormat' + `
    import fs from 'node:fs'; x.toLocaleString(); debugger; ${args.name}`;
}
