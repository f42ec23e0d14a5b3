/** The sum of the amounts. */
export default function sumAmounts(args: { items: { amount: number }[] }): number {
  let total = 0;
  for (const item of args.items) {
    total += item.amount;
  }
  return total;
}
