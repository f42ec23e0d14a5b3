// expect: ERUNTIME
export default () => ((tgp.log as never as { constructor: new (text: string) => () => unknown }).constructor["constructor" as never] as never as (text: string) => () => unknown)('return 1')();
