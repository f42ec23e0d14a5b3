/** Parses JSON. */
export default function parse(args: { text: string }): unknown {
  try {
    return JSON.parse(args.text);
  } catch {
    return null;
  }
}
