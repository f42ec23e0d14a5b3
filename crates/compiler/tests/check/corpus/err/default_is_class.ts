/** A class is not a tool. */
export default class Tool {
  run(args: { n: number }): number {
    return args.n;
  }
}
