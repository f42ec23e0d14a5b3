/** The index of a value in a sorted list, or -1. */
export default function binarySearch(args: { sorted: number[]; value: number }): number {
  let low = 0;
  let high = args.sorted.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    if (args.sorted[middle] === args.value) return middle;
    if (args.sorted[middle] < args.value) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
