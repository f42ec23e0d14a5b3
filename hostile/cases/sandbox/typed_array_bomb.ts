// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
const kept: Uint8Array[] = [];
export default () => {
  for (;;) kept.push(new Uint8Array(1_000_000));
};
