// expect: OK
// result: "tgp.exec_tool: args.map is a Map: pass Object.fromEntries(map)"
// What a value is, the engine says; a prototype that was replaced does not hide it.
export default async () => {
  const map = new Map([['a', 1]]);
  Object.setPrototypeOf(map, Object.prototype);
  JSON.stringify = () => '{}';
  try {
    await tgp.exec_tool('tools/none.ts', { map });
  } catch (error) {
    return (error as Error).message;
  }
};
