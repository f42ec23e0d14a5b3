/** Compares two semantic versions: -1, 0 or 1. */
export default function semverCompare(args: { a: string; b: string }): number {
  const parse = (version: string): number[] => {
    const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version);
    if (!match) throw new Error(`not a semantic version: ${version}`);
    return match.slice(1, 4).map(Number);
  };
  const [left, right] = [parse(args.a), parse(args.b)];
  const index = left.findIndex((part, at) => part !== right[at]);
  return index === -1 ? 0 : Math.sign(left[index] - right[index]);
}
