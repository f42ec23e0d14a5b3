// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
let list: number[] = [1, 2];
export default () => {
  for (;;) list = [...list, ...list];
};
