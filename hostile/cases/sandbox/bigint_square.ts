// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
let value = 3n;
export default () => {
  for (;;) value *= value;
};
