// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | ERUNTIME | ECOMPILE
export default () => /(?:(?:x{1000}){1000}){1000}y/.test('x'.repeat(100_000));
