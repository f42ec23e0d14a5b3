/** Copies of the arguments may change. */
export default function copied({ items, ...rest }: { items: { n: number }[]; a?: number }) {
  const sorted = [...items].sort((a, b) => a.n - b.n);
  const mapped = items.map((item) => ({ ...item, n: 1 }));
  mapped.push({ n: 2 });
  const options = { ...rest };
  options.a = 1;
  let list = items;
  list = list.filter((item) => item.n > 0);
  list.reverse();
  const text = structuredClone(items);
  text.pop();
  return [sorted, mapped, options, list, text, items.slice().reverse(), items.toSorted()];
}
