// expect: ERR_ISOLATE_TIMEOUT
export default () => ({ toJSON() { for (;;) {} } });
