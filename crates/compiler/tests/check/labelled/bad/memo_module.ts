const memo: Record<number, number> = {};

/** A factorial. */
export default function factorial(args: { n: number }): number {
  if (memo[args.n] !== undefined) return memo[args.n];
  const value = args.n <= 1 ? 1 : args.n * factorial({ n: args.n - 1 });
  memo[args.n] = value;
  return value;
}
