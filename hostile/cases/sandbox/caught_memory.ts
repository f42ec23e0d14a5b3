// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
const kept: unknown[] = [];
export default () => {
  for (;;) {
    try {
      for (;;) kept.push('y'.repeat(1_000_000) + kept.length);
    } catch {
      kept.pop();
    }
  }
};
