// expect: ERR_ISOLATE_TIMEOUT
export default () => {
  throw { get message() { for (;;) {} } };
};
