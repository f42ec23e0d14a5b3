// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
for (;;) setTimeout(() => {}, 1_000_000);
