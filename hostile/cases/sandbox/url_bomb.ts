// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
const text = `http://a/${'%41/../'.repeat(500_000)}?${'a=b&'.repeat(500_000)}`;
export default () => {
  for (;;) new URL(text).searchParams.append('x', text);
};
