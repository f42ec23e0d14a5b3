// expect: ERUNTIME | ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
export default () => Object.fromEntries(Array.from({ length: 400_000 }, (_, at) => [`key${at}`, at]));
