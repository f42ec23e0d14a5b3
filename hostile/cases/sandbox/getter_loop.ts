// expect: ERR_ISOLATE_TIMEOUT
export default () => ({ get answer() { for (;;) {} } });
