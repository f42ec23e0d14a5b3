const store = { items: [] as string[] };

/** Changes the store through what was taken out of it. */
export default function tool(args: { item: string }): number {
  const { items } = store;
  items.push(args.item);
  return items.length;
}
