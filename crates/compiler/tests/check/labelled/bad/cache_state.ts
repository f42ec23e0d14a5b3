const cache = new Map<string, unknown>();

/** Loads JSON with a cache. */
export default async function cached(args: { url: string }): Promise<unknown> {
  if (cache.has(args.url)) return cache.get(args.url);
  const value = await (await tgp.fetch(args.url)).json();
  cache.set(args.url, value);
  return value;
}
