// expect: ERR_ISOLATE_MEMORY | ERUNTIME
export default () => String(1n << (2n ** 40n)).length;
