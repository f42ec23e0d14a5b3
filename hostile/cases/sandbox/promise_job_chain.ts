// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
const again = (): Promise<unknown> => Promise.resolve().then(again);
export default () => again();
