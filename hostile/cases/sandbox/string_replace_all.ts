// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
export default () => 'a'.repeat(100_000).replaceAll('', 'b'.repeat(10_000)).length;
