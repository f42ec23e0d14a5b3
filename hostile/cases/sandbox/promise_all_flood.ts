// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
export default () => Promise.all(Array.from({ length: 3_000_000 }, async (_, at) => at));
