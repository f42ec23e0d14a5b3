/** A Fibonacci number with a memo per call. */
export default function fibonacci(args: { n: number }): bigint {
  const memo = new Map<number, bigint>([[0, 0n], [1, 1n]]);
  const fib = (n: number): bigint => {
    const known = memo.get(n);
    if (known !== undefined) return known;
    const value = fib(n - 1) + fib(n - 2);
    memo.set(n, value);
    return value;
  };
  return fib(args.n);
}
