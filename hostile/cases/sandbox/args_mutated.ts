// expect: OK
// result: {"length":2,"own":true}
// args: {"list":[1]}
args.list.push(2);
Object.defineProperty(globalThis, 'args', { value: { list: [] } });
export default (given: { list: number[] }) => ({ length: given.list.length, own: args.list.length === 0 });
