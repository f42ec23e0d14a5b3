// expect: ERR_ISOLATE_TIMEOUT
const again = (): Promise<unknown> => Promise.resolve().then(again);
export default () => again();
