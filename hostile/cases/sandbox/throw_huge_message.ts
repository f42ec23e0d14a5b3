// expect: ERUNTIME
// cpu: roomy
export default () => {
  throw new Error('x'.repeat(20_000_000));
};
