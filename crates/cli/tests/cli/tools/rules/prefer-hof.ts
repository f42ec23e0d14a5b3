/** The sum of some numbers. */
export default function sum(args: { values: number[] }): number {
  let total = 0;
  for (const value of args.values) {
    total += value;
  }
  return total;
}
