/** Checks a list of words. */
export default function wordList(args: { text: string }): boolean {
  return /^(\w+\s?)+$/.test(args.text);
}
