/** Rounds a price to the next 5 cents, as shops in Switzerland do. */
export default function roundToFiveCents(args: { amount: number }): number {
  return Math.round(args.amount * 20) / 20;
}
