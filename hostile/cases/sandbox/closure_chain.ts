// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
let chain: () => unknown = () => 0;
for (;;) {
  const inner = chain;
  chain = () => inner;
}
