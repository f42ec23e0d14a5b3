/** Adds the total to each line. */
export default function lineTotals(args: { lines: { quantity: number; price: number; total?: number }[] }) {
  for (const line of args.lines) {
    line.total = line.quantity * line.price;
  }
  return args.lines;
}
