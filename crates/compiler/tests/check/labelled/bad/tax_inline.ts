/** The gross price. */
export default function gross(args: { net: number }): number {
  return args.net * 1.19;
}
