// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT
let shared: unknown = [];
for (let at = 0; at < 90; at += 1) shared = [shared, shared];
export default () => shared;
