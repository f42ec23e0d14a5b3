// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
for (;;) new WeakRef(new Uint8Array(100_000));
