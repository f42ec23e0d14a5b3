// expect: ERR_ISOLATE_MEMORY
export default () => crypto.getRandomValues(new Uint8Array(2 ** 28)).length;
