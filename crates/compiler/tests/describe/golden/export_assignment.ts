/** Doubles. */
function double(args: { n: number }) {
  return args.n * 2;
}
export = double;
