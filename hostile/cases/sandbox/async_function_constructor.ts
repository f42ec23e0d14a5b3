// expect: ERUNTIME
export default () => {
  const AsyncFunction = (async () => {}).constructor as never as (text: string) => () => Promise<unknown>;
  return AsyncFunction('return 1')();
};
