/** Counts values in bins of equal width. */
export default function histogram(args: { values: number[]; bins?: number }): { from: number; to: number; count: number }[] {
  const bins = args.bins ?? 10;
  const min = Math.min(...args.values);
  const width = (Math.max(...args.values) - min) / bins || 1;
  const counts = new Array(bins).fill(0);
  args.values.forEach((value) => {
    counts[Math.min(bins - 1, Math.floor((value - min) / width))]++;
  });
  return counts.map((count, index) => ({ from: min + index * width, to: min + (index + 1) * width, count }));
}
