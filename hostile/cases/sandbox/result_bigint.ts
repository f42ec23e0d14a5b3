// expect: ERUNTIME
export default () => ({ big: 1n });
