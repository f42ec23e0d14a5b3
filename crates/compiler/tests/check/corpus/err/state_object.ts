const stats = { calls: 0, items: [] as string[] };

/** Keeps statistics. */
export default function tool(args: { name: string }): number {
  stats.calls++;
  stats.items.push(args.name);
  delete stats['calls'];
  Object.assign(stats, { calls: 1 });
  return stats.calls;
}
