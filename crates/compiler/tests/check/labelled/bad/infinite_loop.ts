/** A range of numbers. */
export default function rangeOf(args: { from: number; to: number; step: number }): number[] {
  const values: number[] = [];
  let value = args.from;
  while (value < args.to) {
    values.push(value);
    value += args.step;
  }
  return values;
}
