// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
const list = new Array(2 ** 32 - 1);
export default () => list.copyWithin(0, 1).length;
