// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | ERUNTIME
const signals: AbortSignal[] = [];
for (;;) signals.push(AbortSignal.any(signals));
