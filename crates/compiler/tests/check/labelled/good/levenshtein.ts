/** The edit distance of two texts. */
export default function levenshtein(args: { a: string; b: string }): number {
  let previous = Array.from({ length: args.b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= args.a.length; i++) {
    const current = [i];
    for (let j = 1; j <= args.b.length; j++) {
      const cost = args.a[i - 1] === args.b[j - 1] ? 0 : 1;
      current[j] = Math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost);
    }
    previous = current;
  }
  return previous[args.b.length];
}
