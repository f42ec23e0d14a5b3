/** Without arguments these need no locale data. */
export default function sorted(args: { words: string[] }): string[] {
  return args.words.map((word) => word.toLocaleUpperCase()).sort((a, b) => a.localeCompare(b));
}
