// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
const kept: number[][] = [];
while (true) kept.push(new Array(10_000).fill(kept.length));
