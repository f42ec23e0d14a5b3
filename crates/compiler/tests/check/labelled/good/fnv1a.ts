/** The 32-bit FNV-1a hash of a text, as eight hexadecimal digits. */
export default function fnv1a(args: { text: string }): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(args.text)) {
    hash ^= byte;
    hash = Math.imul(hash, 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}
