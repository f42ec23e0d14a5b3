// expect: ERR_ISOLATE_MEMORY | ERUNTIME
const buffer = new ArrayBuffer(8, { maxByteLength: 2 ** 32 });
export default () => {
  buffer.resize(2 ** 31);
  return buffer.byteLength;
};
