// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | ERUNTIME
export default () => JSON.parse('{"a":1,"b":2}', function (key, value) {
  if (key === 'a') (this as { b: unknown }).b = { a: 1, b: 2 };
  return value;
});
