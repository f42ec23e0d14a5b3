// expect: ERUNTIME
// cpu: roomy
export default () => '\u20ac'.repeat(1_500_000);
