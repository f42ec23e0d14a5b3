/** Groups the nodes of an undirected graph that are connected. */
export default function connectedComponents(args: { edges: [string, string][] }): string[][] {
  const parent = new Map<string, string>();
  const find = (node: string): string => {
    const above = parent.get(node) ?? node;
    if (above === node) return node;
    const root = find(above);
    parent.set(node, root);
    return root;
  };
  for (const [a, b] of args.edges) {
    if (!parent.has(a)) parent.set(a, a);
    if (!parent.has(b)) parent.set(b, b);
    parent.set(find(a), find(b));
  }
  return Object.values(Object.groupBy([...parent.keys()], find)) as string[][];
}
