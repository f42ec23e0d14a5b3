/** Doubles a number. */
function main(args: { n: number }): number {
  return args.n + args.n;
}

module.exports = { main };
