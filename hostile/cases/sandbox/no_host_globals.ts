// expect: OK
// result: []
export default () => ['process', 'Deno', 'Bun', 'SharedArrayBuffer', 'Atomics', 'WebAssembly', 'std', 'os', 'bjson', 'scriptArgs', 'print', 'load', 'gc', '__dirname'].filter((name) => name in globalThis);
