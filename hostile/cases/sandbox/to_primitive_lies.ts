// expect: ERUNTIME
export default () => +({ [Symbol.toPrimitive]: () => ({}) } as never);
