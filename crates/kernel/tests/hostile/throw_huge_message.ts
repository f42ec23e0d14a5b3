// expect: ERUNTIME
export default () => {
  throw new Error('x'.repeat(20_000_000));
};
