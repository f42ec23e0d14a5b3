// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
const registry = new FinalizationRegistry(() => { for (;;) {} });
const kept: WeakRef<object>[] = [];
for (;;) {
  const target = { kept };
  registry.register(target, kept);
  kept.push(new WeakRef(target));
}
