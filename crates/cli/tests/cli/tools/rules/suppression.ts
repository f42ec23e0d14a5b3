/** Hours of a working week. */
export default function hours(args: { weeks: number }): number {
  // tgp-allow magic-number
  return args.weeks * 37.5;
}
