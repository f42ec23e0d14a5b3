// expect: ERR_ISOLATE_TIMEOUT
outer: while (true) {
  for (;;) continue outer;
}
