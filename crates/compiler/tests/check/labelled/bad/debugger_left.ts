/** Normalizes a text. */
export default function normalizeText(args: { text: string }): string {
  const text = args.text.trim();
  debugger;
  return text.replace(/\s+/g, ' ');
}
