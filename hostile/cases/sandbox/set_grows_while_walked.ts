// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
const set = new Set([0]);
for (const item of set) set.add(item + 1);
