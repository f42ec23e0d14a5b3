const ORDER = ['low', 'mid', 'high'] as const;
const NAMES = new Map([['a', 'Ada']]);

/** What happens inside a call stays inside the call. */
export default function collect(args: { words: string[] }): { counts: Record<string, number>; seen: string[] } {
  const seen = new Set<string>();
  const counts: Record<string, number> = {};
  let last = '';
  const note = (word: string) => {
    last = word;
    counts[word] = (counts[word] ?? 0) + 1;
  };
  args.words.filter((word) => word !== last && NAMES.has(word)).forEach(note);
  seen.add(last);
  return { counts, seen: [...ORDER, ...seen].sort() };
}
