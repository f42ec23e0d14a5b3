/** Names that are close to a misspelled one. */

/** Names longer than this are not compared. */
const MAX_LENGTH = 64;

/** The known name that was probably meant: at most a third of its letters differ. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(plain(name), plain(candidate));
    const limit = Math.max(1, Math.floor(candidate.length / 3));
    if (distance <= limit && (best === undefined || distance < best.distance)) {
      best = { name: candidate, distance };
    }
  }
  return best?.name;
}

/** `did you mean …?`, or all names that there are. */
export function suggestion(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === undefined ? `expected one of ${known.map((one) => `\`${one}\``).join(', ')}` : `did you mean \`${near}\`?`;
}

/** Insertions, deletions, replacements and swaps of neighbours. */
function editDistance(one: string, other: string): number {
  if (Math.max(one.length, other.length) > MAX_LENGTH) {
    return Number.POSITIVE_INFINITY;
  }
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwap = row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current.push(
        Math.min(
          (last[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (last[column - 1] ?? 0) + (isSame ? 0 : 1),
          isSwap ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    beforeLast = last;
    last = current;
  }
  return last[other.length] ?? 0;
}
