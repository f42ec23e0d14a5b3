// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
export default () => tgp.write_file('/tmp/x', 'x'.repeat(8_000_000));
