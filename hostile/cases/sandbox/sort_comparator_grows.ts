// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | ERUNTIME
const list = Array.from({ length: 1000 }, (_, at) => at);
export default () => list.sort((a, b) => { list.push(...list); return a - b; }).length;
