// expect: ERR_ISOLATE_MEMORY | ERUNTIME
let buffer = new ArrayBuffer(8);
export default () => {
  for (;;) buffer = buffer.transfer(buffer.byteLength * 4);
};
