/** Sorts numbers. */
export default function sorted(args: { numbers: number[] }): number[] {
  return args.numbers.sort((a, b) => a - b);
}
