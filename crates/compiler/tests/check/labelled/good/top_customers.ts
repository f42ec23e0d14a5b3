/** Customers with the highest spending since a date. */
export default async function topCustomers(args: { since: string; limit?: number; minOrders?: number }) {
  const { since, limit = 10, minOrders = 3 } = args;
  return tgp.exec_sql(
    'SELECT customer_id, SUM(total) AS spent, COUNT(*) AS orders FROM orders WHERE created_at >= :since GROUP BY customer_id HAVING COUNT(*) >= :minOrders ORDER BY spent DESC LIMIT :limit',
    { since, limit, minOrders },
  );
}
