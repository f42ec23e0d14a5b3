/** The n-th Fibonacci number. */
export default function fib(args: { n: number }): number {
  const step = (left: number, a: number, b: number): number =>
    left === 0 ? a : step(left - 1, b, a + b);
  return step(args.n, 0, 1);
}
