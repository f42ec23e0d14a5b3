// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
let list: number[] = [1];
export default () => {
  for (;;) list = list.concat(list);
};
