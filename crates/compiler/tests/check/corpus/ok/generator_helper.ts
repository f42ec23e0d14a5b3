function* pages(total: number, size: number): Generator<[number, number]> {
  for (let start = 0; start < total; start += size) {
    yield [start, Math.min(start + size, total)];
  }
}

/** Splits a range into pages. */
export default (args: { total: number; size: number }): [number, number][] => [...pages(args.total, args.size)];
