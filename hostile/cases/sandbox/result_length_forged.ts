// expect: ERUNTIME
// cpu: roomy
export default () => {
  Object.defineProperty(String.prototype, 'length', { value: 1 });
  return ['x'.repeat(5_000_000)];
};
