/** Parses text or bytes. */
export default function parse(args: { text: string }): string;
export default function parse(args: { bytes: number[] }): string;
export default function parse(args: { text?: string; bytes?: number[] }): string {
  return args.text ?? String(args.bytes);
}
