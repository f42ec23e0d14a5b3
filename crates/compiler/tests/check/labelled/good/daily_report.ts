/** Builds the report of one day from two other tools and saves it. */
export default async function dailyReport(args: { date: string; folder: string }): Promise<{ path: string; regions: number }> {
  const [sales, returns] = await Promise.all([
    tgp.exec_tool<{ region: string; revenue: number }[]>('tools/sales_by_region.ts', { from: args.date, to: args.date }),
    tgp.exec_tool<{ region: string; count: number }[]>('tools/returns_by_region.ts', { date: args.date }),
  ]);
  const counts = new Map(returns.map((entry) => [entry.region, entry.count]));
  const lines = sales.map((row) => `${row.region}: ${row.revenue.toFixed(2)} (${counts.get(row.region) ?? 0} returns)`);
  const path = `${args.folder}/report-${args.date}.txt`;
  await tgp.write_file(path, lines.join('\n'));
  return { path, regions: sales.length };
}
