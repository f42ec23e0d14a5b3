// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
const bytes = new Uint8Array(20_000_000).fill(0xff);
export default () => new TextDecoder().decode(bytes).length;
