const cache = new Map<string, number>();

/** Remembers. */
export default function remember(args: { key: string }): number {
  const alias = cache;
  alias.set(args.key, 1);
  return cache.size;
}
