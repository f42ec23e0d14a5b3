// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | ERUNTIME
export default () => new RegExp(`${'('.repeat(100_000)}a${')'.repeat(100_000)}`).test('a');
