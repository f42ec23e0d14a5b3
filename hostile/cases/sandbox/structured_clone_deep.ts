// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT
let deep: unknown = null;
for (let at = 0; at < 100_000; at += 1) deep = [deep];
export default () => structuredClone(deep);
