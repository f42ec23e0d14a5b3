// expect: ERR_ISOLATE_MEMORY | ERUNTIME
export default () => 'x'.padEnd(2 ** 29, 'yz').length;
