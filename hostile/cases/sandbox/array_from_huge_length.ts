// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
export default () => Array.from({ length: 2 ** 32 - 1 }).length;
