/** The most frequent words of a text. */
export default function wordFrequency(args: { text: string; top?: number; stopWords?: string[] }): { word: string; count: number }[] {
  const stop = new Set(args.stopWords ?? ['the', 'a', 'an', 'and', 'or', 'of', 'to', 'in']);
  const counts = new Map<string, number>();
  for (const word of args.text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    if (stop.has(word)) continue;
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return [...counts]
    .map(([word, count]) => ({ word, count }))
    .sort((a, b) => b.count - a.count || a.word.localeCompare(b.word))
    .slice(0, args.top ?? 20);
}
