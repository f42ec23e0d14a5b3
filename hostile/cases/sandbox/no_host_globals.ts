// expect: OK
// result: []
export default () => ['process', 'Deno', 'Bun', 'fetch', 'eval', 'Function', 'SharedArrayBuffer', 'Atomics', 'WebAssembly', 'std', 'os', 'bjson', 'scriptArgs', 'print', 'load', 'gc', '__dirname'].filter((name) => name in globalThis);
