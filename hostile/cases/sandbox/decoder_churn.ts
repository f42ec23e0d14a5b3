// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
const kept: TextDecoder[] = [];
for (;;) {
  const decoder = new TextDecoder('iso-2022-jp');
  decoder.decode(new Uint8Array([0x1b]), { stream: true });
  kept.push(decoder);
}
