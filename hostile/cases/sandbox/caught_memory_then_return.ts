// expect: ERR_ISOLATE_MEMORY
export default () => {
  try {
    return new Uint8Array(500_000_000).length;
  } catch {
    return 'as if nothing had been';
  }
};
