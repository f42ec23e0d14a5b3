/** Values outside of the usual range by Tukey's fences. */
export default function outliers(args: { values: number[]; factor?: number }): number[] {
  const sorted = [...args.values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))];
  const [low, high] = [at(0.25), at(0.75)];
  const reach = (args.factor ?? 1.5) * (high - low);
  return args.values.filter((value) => value < low - reach || value > high + reach);
}
