const TABLE: number[] = [];
for (let n = 0; n < 256; n++) {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  TABLE.push(c >>> 0);
}

/** The CRC-32 of a text in UTF-8. */
export default function crc32(args: { text: string }): string {
  const bytes = new TextEncoder().encode(args.text);
  const crc = bytes.reduce((value, byte) => TABLE[(value ^ byte) & 0xff] ^ (value >>> 8), 0xffffffff);
  return ((crc ^ 0xffffffff) >>> 0).toString(16).padStart(8, '0');
}
