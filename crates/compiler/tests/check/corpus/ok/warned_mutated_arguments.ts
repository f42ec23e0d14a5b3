interface Row { name: string; done?: boolean; tags: string[] }

/** Changes of the arguments in many ways. */
export default function mutated(args: { rows: Row[]; list: number[]; limit?: number; map: Record<string, number> }) {
  args.limit ??= 5;
  args.map.total = 1;
  args.map['other']++;
  delete args.map.old;
  args.list.sort();
  const { rows } = args;
  rows.reverse();
  const list = args.list ?? [];
  list.push(1);
  for (const row of args.rows) row.done = true;
  args.rows.forEach((row) => row.tags.push('seen'));
  const found = args.rows.find((row) => row.done);
  if (found) found.name = 'found';
  return [Object.assign(args.map, { a: 1 }), args.rows.map((row) => Object.assign(row, { done: true }))];
}
