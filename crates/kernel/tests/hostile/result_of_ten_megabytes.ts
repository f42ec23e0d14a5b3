// expect: ERUNTIME
export default () => 'x'.repeat(10_000_000);
