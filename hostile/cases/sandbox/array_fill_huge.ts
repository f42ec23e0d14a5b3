// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
export default () => new Array(2 ** 32 - 1).fill(0).length;
