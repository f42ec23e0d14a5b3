// expect: ERR_ISOLATE_TIMEOUT
const again = { then(done: (value: unknown) => void) { done(again); } };
export default () => again;
