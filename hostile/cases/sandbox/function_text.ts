// expect: ERUNTIME
export default () => new (Function as never as new (text: string) => () => unknown)('return tgp')();
