// expect: ERR_ISOLATE_TIMEOUT
export default () => Array.prototype.unshift.call({ length: 2 ** 53 - 10 }, 1);
