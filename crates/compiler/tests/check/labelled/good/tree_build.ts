interface Item { id: string; parent: string | null; name: string }
interface Node extends Item { children: Node[] }
/** Builds a tree from a flat list. */
export default function buildTree(args: { items: Item[] }): Node[] {
  const nodes = new Map(args.items.map((item): [string, Node] => [item.id, { ...item, children: [] }]));
  const roots: Node[] = [];
  for (const node of nodes.values()) {
    const parent = node.parent === null ? undefined : nodes.get(node.parent);
    if (parent) parent.children.push(node);
    else roots.push(node);
  }
  return roots;
}
