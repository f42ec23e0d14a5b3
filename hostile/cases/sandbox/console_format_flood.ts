// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | OK
export default () => console.log('%O'.repeat(100_000), ...Array.from({ length: 60_000 }, () => ({ a: [[1]] })));
