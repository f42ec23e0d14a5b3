// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME | OK
let rope = '';
for (let at = 0; at < 200_000; at += 1) rope = `${at}${rope}`;
export default () => rope.indexOf('none');
