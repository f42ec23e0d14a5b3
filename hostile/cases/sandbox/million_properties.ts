// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
const object: Record<string, number> = {};
for (let at = 0; ; at += 1) object[`key${at}`] = at;
