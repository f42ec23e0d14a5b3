/** The first match, or nothing, which the type says. */
export default function first(args: { words: string[]; start: string }): string | undefined {
  for (const word of args.words) {
    if (word.startsWith(args.start)) return word;
  }
}
