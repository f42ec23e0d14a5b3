/** The shipping cost. */
export default function shipping(args: { weight: number }): number {
  return args.weight > 31.5 ? 49.9 : 4.95 + args.weight * 0.35;
}
