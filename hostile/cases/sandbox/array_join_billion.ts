// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
export default () => new Array(1e9).join().length;
