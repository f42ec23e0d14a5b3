// expect: ERR_ISOLATE_TIMEOUT | OK
let object: object = {};
for (let at = 0; at < 50_000; at += 1) object = Object.create(object);
export default () => { let n = 0; for (let at = 0; at < 1_000_000; at += 1) n += 'missing' in object ? 1 : 0; return n; };
