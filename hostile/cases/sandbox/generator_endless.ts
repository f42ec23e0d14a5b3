// expect: ERR_ISOLATE_TIMEOUT
function* numbers() {
  for (let n = 0; ; n += 1) yield n;
}
export default () => { let last = 0; for (const n of numbers()) last = n; return last; };
