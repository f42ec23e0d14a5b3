// expect: OK | ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
const wide: Record<string, number> = {};
for (let at = 0; at < 1_000_000; at += 1) wide[`k${at}`] = at;
export default () => console.log(wide);
