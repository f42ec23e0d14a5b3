/** How many requests a cache of a given size would answer. */
export default function lruSimulation(args: { requests: string[]; size: number }): { hits: number; misses: number } {
  const cache = new Map<string, true>();
  let hits = 0;
  for (const key of args.requests) {
    if (cache.has(key)) {
      hits++;
      cache.delete(key);
    } else if (cache.size >= args.size) {
      const oldest = cache.keys().next().value;
      if (oldest !== undefined) cache.delete(oldest);
    }
    cache.set(key, true);
  }
  return { hits, misses: args.requests.length - hits };
}
