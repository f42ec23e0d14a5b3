/** Prints the total. */
export default function printTotal(args: { values: number[] }) {
  console.log(args.values.reduce((sum, value) => sum + value, 0));
}
