// expect: OK
// cpu: roomy
Array.prototype.join = () => 'x'.repeat(1_000_000);
export default () => console.log('short');
