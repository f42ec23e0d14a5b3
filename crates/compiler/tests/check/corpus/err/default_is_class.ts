/** A class is no tool. */
export default class Tool {
  run(args: { n: number }): number {
    return args.n;
  }
}
