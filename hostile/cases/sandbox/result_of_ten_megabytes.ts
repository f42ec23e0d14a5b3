// expect: ERUNTIME
// cpu: roomy
export default () => 'x'.repeat(10_000_000);
