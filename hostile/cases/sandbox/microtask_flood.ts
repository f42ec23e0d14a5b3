// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
const again = () => { queueMicrotask(again); queueMicrotask(again); };
export default () => new Promise(() => again());
