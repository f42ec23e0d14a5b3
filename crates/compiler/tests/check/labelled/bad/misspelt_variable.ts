/** Sums up. */
export default function sumUp(args: { values: number[] }): number {
  const total = args.values.reduce((sum, value) => sum + value, 0);
  return totl;
}
