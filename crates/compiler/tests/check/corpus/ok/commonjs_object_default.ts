/** Doubles a number. */
function double(args: { n: number }): number {
  return args.n + args.n;
}

module.exports = { default: double };
