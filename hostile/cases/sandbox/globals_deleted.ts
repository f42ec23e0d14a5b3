// expect: OK
// result: "alive"
for (const name of ['Promise', 'JSON', 'Object', 'Array', 'Map', 'Error', 'Reflect', 'String', 'console', 'args', 'Uint8Array']) delete (globalThis as never as Record<string, unknown>)[name];
export default async () => {
  await tgp.read_file('x').catch(() => 0);
  return 'alive';
};
