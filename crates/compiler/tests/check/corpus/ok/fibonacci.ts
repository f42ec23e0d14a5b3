/** The n-th Fibonacci number. */
export default function fib(args: { n: number }): number {
  const of = (n: number): number => (n <= 1 ? n : of(n - 1) + of(n - 2));
  return of(args.n);
}
