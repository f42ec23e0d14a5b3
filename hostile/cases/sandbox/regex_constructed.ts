// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | ERUNTIME
export default () => new RegExp(`${'(a?)'.repeat(200)}${'a'.repeat(200)}$`).test('a'.repeat(200));
