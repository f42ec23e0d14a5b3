// expect: ERR_ISOLATE_TIMEOUT
export default () => new Promise((resolve) => setTimeout(resolve, 1_000_000));
