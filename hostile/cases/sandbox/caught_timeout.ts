// expect: ERR_ISOLATE_TIMEOUT
const forever = () => {
  try {
    while (true) {}
  } catch {
    return forever();
  } finally {
    forever();
  }
};
export default forever;
