// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
export default () => (7n ** 2_000_000n).toString(10).length;
