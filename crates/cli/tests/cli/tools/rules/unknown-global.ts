/** Rounds a number. */
export default function rounded(args: { n: number }): number {
  return Mth.round(args.n);
}
