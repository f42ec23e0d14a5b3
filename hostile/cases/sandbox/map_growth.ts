// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
const map = new Map<number, string>();
for (let at = 0; ; at += 1) map.set(at, `value ${at}`);
