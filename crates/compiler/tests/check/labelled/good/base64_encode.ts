/** Encodes a UTF-8 text as base64. */
export default function base64Encode(args: { text: string; urlSafe?: boolean }): string {
  const encoded = Buffer.from(args.text, 'utf8').toString('base64');
  return args.urlSafe ? encoded.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '') : encoded;
}
