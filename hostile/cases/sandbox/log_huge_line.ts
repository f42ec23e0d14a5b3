// expect: OK
// cpu: roomy
export default () => console.log('x'.repeat(5_000_000));
