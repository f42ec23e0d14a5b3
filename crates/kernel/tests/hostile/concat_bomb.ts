// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
let list: number[] = [1];
export default () => {
  for (;;) list = list.concat(list);
};
