// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
const params = new URLSearchParams('a=1');
for (;;) params.append(params.toString(), params.toString());
