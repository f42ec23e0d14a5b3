// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
let nested: unknown[] = [1];
for (let at = 0; at < 40; at += 1) nested = [nested, nested];
export default () => nested.flat(Infinity).length;
