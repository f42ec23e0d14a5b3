/** Picks one option by weight, with a random number between 0 and 1 from the caller. */
export default function weightedRandom(args: { options: { name: string; weight: number }[]; random: number }): string {
  const total = args.options.reduce((sum, option) => sum + option.weight, 0);
  let rest = args.random * total;
  for (const option of args.options) {
    rest -= option.weight;
    if (rest < 0) return option.name;
  }
  throw new RangeError('there is nothing to choose from');
}
