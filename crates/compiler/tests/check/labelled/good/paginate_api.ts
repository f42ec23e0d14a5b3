interface Page<Item> {
  items: Item[];
  next: string | null;
}

/** Collects all items of a paginated REST API. */
export default async function paginateApi(args: { url: string; token?: string; maxPages?: number }): Promise<unknown[]> {
  const items: unknown[] = [];
  let url: string | null = args.url;
  let pages = 0;
  while (url && pages < (args.maxPages ?? 50)) {
    const headers: Record<string, string> = args.token ? { authorization: `Bearer ${args.token}` } : {};
    const response = await tgp.fetch(url, { headers });
    if (response.status === 429) {
      const wait = Number(response.headers.get('retry-after') ?? 1);
      await new Promise((resolve) => setTimeout(resolve, wait * 1000));
      continue;
    }
    if (!response.ok) throw new Error(`page ${pages + 1}: HTTP ${response.status}`);
    const page: Page<unknown> = await response.json();
    items.push(...page.items);
    url = page.next;
    pages++;
  }
  return items;
}
