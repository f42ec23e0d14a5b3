// expect: ERR_ISOLATE_TIMEOUT
export default () => Object.keys(new Proxy({}, { ownKeys() { for (;;) {} } }));
