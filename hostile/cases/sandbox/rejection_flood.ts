// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
for (;;) Promise.reject(new Error('lost'));
