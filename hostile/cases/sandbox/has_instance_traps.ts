// expect: ERUNTIME
for (const type of [Error, Date, Map, Set, RegExp, Promise]) Object.defineProperty(type, Symbol.hasInstance, { value() { throw new Error('trap'); } });
export default () => {
  console.log({}, new Map());
  throw new Error('plain');
};
