const TABLES = ['users', 'orders', 'products'] as const;

/** How many rows each table has. */
export default async function countRows(args: { only?: (typeof TABLES)[number][] }): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of TABLES) {
    if (args.only && !args.only.includes(table)) continue;
    const [row] = await tgp.exec_sql<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`);
    counts[table] = row.n;
  }
  return counts;
}
