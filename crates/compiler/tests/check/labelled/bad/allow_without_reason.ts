/** The price after the loyalty discount. */
export default function loyaltyPrice(args: { price: number }): number {
  return args.price * 0.93; // tgp-allow magic-number
}
