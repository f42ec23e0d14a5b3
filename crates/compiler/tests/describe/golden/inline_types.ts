/** The n-th Fibonacci number. */
export default function fib(args: { n: number }): number {
  return args.n < 2 ? args.n : fib({ n: args.n - 1 }) + fib({ n: args.n - 2 });
}
