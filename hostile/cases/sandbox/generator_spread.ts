// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
function* numbers() {
  for (let n = 0; ; n += 1) yield n;
}
export default () => [...numbers()].length;
