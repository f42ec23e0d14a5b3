// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
const object: Record<string, number> = {};
for (let at = 0; ; at += 1) object[`key${at}`] = at;
