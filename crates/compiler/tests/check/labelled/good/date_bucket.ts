/** Sales by day, week or month. */
export default async function salesByBucket(args: { bucket: 'day' | 'week' | 'month'; from: string }) {
  const format = { day: '%Y-%m-%d', week: '%Y-%W', month: '%Y-%m' }[args.bucket];
  return tgp.exec_sql(`SELECT strftime('${format}', created_at) AS bucket, SUM(total) AS total FROM orders WHERE created_at >= ? GROUP BY bucket`, [args.from]);
}
