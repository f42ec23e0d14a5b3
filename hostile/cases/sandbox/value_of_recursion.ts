// expect: ERUNTIME
const value: { valueOf(): number } = { valueOf: () => +(value as never) };
export default () => +(value as never);
