interface Row {
  region: string;
  revenue: number;
  orders: number;
}

/** Revenue and number of orders per region in a period, highest revenue first. */
export default async function salesByRegion(args: { from: string; to: string; limit?: number }): Promise<Row[]> {
  const rows = await tgp.exec_sql<Row>(
    `SELECT region, SUM(amount) AS revenue, COUNT(*) AS orders
       FROM orders
      WHERE created_at >= ? AND created_at < ?
      GROUP BY region
      ORDER BY revenue DESC
      LIMIT ?`,
    [args.from, args.to, args.limit ?? 20],
  );
  return [...rows];
}
