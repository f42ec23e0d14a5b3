// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | ERUNTIME
export default () => (Array.prototype.toSorted.call({ length: 2 ** 31 }) as unknown[]).length;
