// expect: ERR_ISOLATE_TIMEOUT
export default () => {
  const error = new Error('slow');
  Object.defineProperty(error, 'stack', { get() { for (;;) {} } });
  throw error;
};
