/** The newest item of every key: the condition decides, so `Object.fromEntries` would not do. */
export default function newest(args: { items: { key: string; at: string }[] }) {
  const found = new Map<string, { at: string }>();
  for (const item of args.items) {
    const known = found.get(item.key);
    if (!known || known.at < item.at) found.set(item.key, item);
  }
  const first = new Map<string, string>();
  for (const item of args.items) {
    if (first.has(item.key)) continue;
    first.set(item.key, item.at);
  }
  return [...found, ...first];
}
