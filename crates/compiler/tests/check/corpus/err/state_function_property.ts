/** Keeps a memory on itself. */
export default function fib(args: { n: number }): number {
  fib.memory = { n: args.n };
  return args.n;
}
