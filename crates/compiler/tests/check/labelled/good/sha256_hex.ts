/** The SHA-256 of a text, in hexadecimal. */
export default async function sha256Hex(args: { text: string }): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(args.text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
