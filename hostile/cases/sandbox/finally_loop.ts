// expect: ERR_ISOLATE_TIMEOUT
const trap = (): never => {
  for (;;) {
    try {
      return undefined as never;
    } finally {
      continue;
    }
  }
};
export default trap;
