type Graph = Record<string, Record<string, number>>;

/** The shortest path in a weighted graph. */
export default function dijkstra(args: { graph: Graph; start: string; goal: string }): { distance: number; path: string[] } | null {
  const distances = new Map<string, number>([[args.start, 0]]);
  const previous = new Map<string, string>();
  const open = new Set<string>([args.start]);
  while (open.size > 0) {
    const current = [...open].reduce((best, node) =>
      (distances.get(node) ?? Infinity) < (distances.get(best) ?? Infinity) ? node : best,
    );
    open.delete(current);
    if (current === args.goal) break;
    for (const [neighbour, weight] of Object.entries(args.graph[current] ?? {})) {
      const candidate = (distances.get(current) ?? Infinity) + weight;
      if (candidate < (distances.get(neighbour) ?? Infinity)) {
        distances.set(neighbour, candidate);
        previous.set(neighbour, current);
        open.add(neighbour);
      }
    }
  }
  const distance = distances.get(args.goal);
  if (distance === undefined) return null;
  const path = [args.goal];
  while (path[0] !== args.start) path.unshift(previous.get(path[0]) as string);
  return { distance, path };
}
