// expect: ERR_ISOLATE_TIMEOUT
function* stubborn() {
  for (;;) {
    try {
      yield 1;
    } finally {
      for (;;) {}
    }
  }
}
export default () => {
  for (const _ of stubborn()) break;
};
