// expect: ERR_ISOLATE_TIMEOUT
export default () => new Promise(() => {
  for (let at = 0; at < 1_000; at += 1) setInterval(() => { for (let n = 0; n < 1_000; n += 1) Math.sqrt(n); }, 0);
});
