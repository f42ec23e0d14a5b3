// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
const node = (): object => ({ get next() { return node(); } });
export default node;
