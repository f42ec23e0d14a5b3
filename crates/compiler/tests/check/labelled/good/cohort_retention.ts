/** The share of customers of each first month that ordered again in later months. */
export default async function cohortRetention(args: { since: string }): Promise<{ cohort: string; month: number; share: number }[]> {
  const rows = await tgp.exec_sql<{ cohort: string; month: number; customers: number; size: number }>(
    `WITH first AS (
       SELECT customer_id, MIN(strftime('%Y-%m', created_at)) AS cohort FROM orders WHERE created_at >= ? GROUP BY customer_id
     ), sizes AS (
       SELECT cohort, COUNT(*) AS size FROM first GROUP BY cohort
     )
     SELECT f.cohort,
            (CAST(strftime('%Y', o.created_at) AS INTEGER) - CAST(substr(f.cohort, 1, 4) AS INTEGER)) * 12
              + CAST(strftime('%m', o.created_at) AS INTEGER) - CAST(substr(f.cohort, 6, 2) AS INTEGER) AS month,
            COUNT(DISTINCT o.customer_id) AS customers, s.size
       FROM orders o JOIN first f ON f.customer_id = o.customer_id JOIN sizes s ON s.cohort = f.cohort
      GROUP BY f.cohort, month`,
    [args.since],
  );
  return rows.map(({ cohort, month, customers, size }) => ({ cohort, month, share: customers / size }));
}
