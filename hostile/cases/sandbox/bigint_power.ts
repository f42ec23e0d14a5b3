// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
export default () => String((2n ** 64n) ** (2n ** 20n)).length;
