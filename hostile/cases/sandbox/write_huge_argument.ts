// expect: ERUNTIME
// cpu: roomy
export default () => tgp.write_file('/tmp/x', 'x'.repeat(8_000_000));
