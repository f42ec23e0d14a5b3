// expect: ERR_ISOLATE_MEMORY | ERUNTIME
export default () => 'x'.repeat(2 ** 30).length;
