/** Comments that allow something, or nothing. */
export default function allowed(args: { net: number; tax?: number }): number[] {
  return [
    args.net * 1.17, // tgp-allow magic-number: the rate of a year that is over
    args.net * 1.18, // tgp-allow magic-number
    args.net * 1.16, // tgp-allow prefer-hof: not a loop
    args.net, // tgp-allow forbidden-global: there is none
  ];
}
