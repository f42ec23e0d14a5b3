// expect: ERR_ISOLATE_TIMEOUT
export default () => {
  for (;;) require('./require_loop_other.ts');
};
// file: require_loop_other.ts
module.exports = 1;
