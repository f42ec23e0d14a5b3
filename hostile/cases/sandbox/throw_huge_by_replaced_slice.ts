// expect: ERUNTIME
// cpu: roomy
String.prototype.slice = function () { return 'x'.repeat(3_000_000); };
export default () => {
  throw new Error('short');
};
