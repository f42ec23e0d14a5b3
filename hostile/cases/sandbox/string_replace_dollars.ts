// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
let text = 'ab';
export default () => {
  for (;;) text = text.replace(/.*/s, '$&$&$&$&');
};
