// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
let rope = 'ab';
export default () => {
  for (;;) rope = rope + rope + rope.length;
};
