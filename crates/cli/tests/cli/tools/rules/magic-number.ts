/** The price with tax. */
export default function price(args: { net: number }): number {
  return args.net * 1.19;
}
