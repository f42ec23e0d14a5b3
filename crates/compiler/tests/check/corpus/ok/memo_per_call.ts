/** Fibonacci with a memory that lives as long as the call. */
export default function fib(args: { n: number }): number {
  const known = new Map<number, number>();
  const of = (n: number): number => {
    const stored = known.get(n);
    if (stored !== undefined) return stored;
    const value = n <= 1 ? n : of(n - 1) + of(n - 2);
    known.set(n, value);
    return value;
  };
  return of(args.n);
}
