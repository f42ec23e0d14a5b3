// expect: ERR_ISOLATE_MEMORY
const kept: number[][] = [];
while (true) kept.push(new Array(10_000).fill(kept.length));
