// expect: ERR_ISOLATE_TIMEOUT
while (true) {}
