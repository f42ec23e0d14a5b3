/** Three loops that have shorter names. */
export default function loops(args: { items: { key: string; price: number }[] }) {
  const names: string[] = [];
  for (const item of args.items) {
    if (item.price > 0) names.push(item.key);
  }
  let total = 0;
  for (let index = 0; index < args.items.length; index++) {
    total += args.items[index].price;
  }
  const byKey: Record<string, number> = {};
  args.items.forEach((item) => {
    byKey[item.key] = item.price;
  });
  return { names, total, byKey };
}
