// expect: ERR_ISOLATE_TIMEOUT | ERUNTIME
// A backlog of calls that are always ready must not keep the kernel from looking at the clock.
for (let at = 0; at < 900; at += 1) tgp.list_files('');
for (;;) {}
