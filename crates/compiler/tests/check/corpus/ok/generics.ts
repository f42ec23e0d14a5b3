/** Groups items by a key. */
export default function groupBy<T extends Record<string, unknown>, K extends keyof T>(args: { items: T[]; key: K }) {
  return args.items.reduce<Record<string, T[]>>((groups, item) => {
    const name = String(item[args.key]);
    return { ...groups, [name]: [...(groups[name] ?? []), item] };
  }, {});
}
