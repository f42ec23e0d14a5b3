// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
let chain: () => unknown = () => 0;
for (;;) {
  const inner = chain;
  chain = () => inner;
}
