// expect: OK
// result: "alive"
const hostile = { get a(): never { throw new Error('no'); }, toString() { throw new Error('no'); } };
export default () => {
  console.log(hostile, new Proxy({}, { ownKeys() { throw null; } }), Object.create(null), Symbol('s'), 1n);
  console.error(new Proxy(() => 0, { get() { throw hostile; } }));
  return 'alive';
};
