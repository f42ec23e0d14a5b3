// expect: ERR_ISOLATE_TIMEOUT
const again = () => setTimeout(again, 0);
export default () => new Promise(() => again());
