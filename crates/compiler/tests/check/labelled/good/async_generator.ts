async function* pages(url: string): AsyncGenerator<unknown[]> {
  let next: string | null = url;
  while (next) {
    const response = await tgp.fetch(next);
    const body = await response.json<{ items: unknown[]; next: string | null }>();
    yield body.items;
    next = body.next;
  }
}
/** All items of an API. */
export default async function all(args: { url: string }): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const page of pages(args.url)) items.push(...page);
  return items;
}
