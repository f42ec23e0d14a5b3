/** Trims lines. */
export default function trimLines(args: { text: string }): string {
  return args.text.split('\n').map((line) => line.trim()).join('\n');
