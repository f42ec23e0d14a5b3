/** Merges overlapping intervals. */
export default function mergeIntervals(args: { intervals: [number, number][] }): [number, number][] {
  const sorted = args.intervals.map(([start, end]): [number, number] => [start, end]).sort((a, b) => a[0] - b[0]);
  const merged: [number, number][] = [];
  for (const interval of sorted) {
    const last = merged.at(-1);
    if (last && interval[0] <= last[1]) last[1] = Math.max(last[1], interval[1]);
    else merged.push(interval);
  }
  return merged;
}
