/** The median of values. */
export default function medianOf(args: { values: number[] }): number {
  const sorted = args.values.sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
