// expect: ERR_ISOLATE_TIMEOUT
const value = { [Symbol.toPrimitive]() { for (;;) {} } };
export default () => `${value as never}`;
