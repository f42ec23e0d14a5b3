// expect: ERR_ISOLATE_TIMEOUT | OK
const list = new Array(2 ** 32 - 1);
export default () => list.indexOf(1);
