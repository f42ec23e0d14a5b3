/** The value of savings with compound interest. */
export default function compoundInterest(args: { principal: number; rate: number; years: number; timesPerYear?: number }): number {
  const n = args.timesPerYear ?? 12;
  return args.principal * (1 + args.rate / n) ** (n * args.years);
}
