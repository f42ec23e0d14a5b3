// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
const kept: Uint8Array[] = [];
const text = 'x'.repeat(1_000_000);
for (;;) kept.push(new TextEncoder().encode(text));
