// expect: ERR_ISOLATE_TIMEOUT
const bytes = new Uint8Array(65_536);
for (;;) crypto.getRandomValues(bytes);
