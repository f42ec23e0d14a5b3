/** What engines have. */
export default () => [WebAssembly, new SharedArrayBuffer(1), Atomics, Deno, Bun];
