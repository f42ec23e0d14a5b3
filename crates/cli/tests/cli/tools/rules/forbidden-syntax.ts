/** Stops in a debugger. */
export default function stop(args: { n: number }): number {
  debugger;
  return args.n;
}
