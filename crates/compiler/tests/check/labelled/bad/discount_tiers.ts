/** The price after discount. */
export default function discounted(args: { total: number }): number {
  if (args.total > 500) return args.total * 0.85;
  if (args.total > 250) return args.total * 0.93;
  return args.total;
}
