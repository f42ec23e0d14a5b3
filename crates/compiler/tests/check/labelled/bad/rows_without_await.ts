/** Names of all active customers. */
export default async function activeCustomers(args: { limit: number }) {
  const rows = tgp.exec_sql('SELECT name FROM customers WHERE active = 1 LIMIT ?', [args.limit]);
  return rows.map((row: { name: string }) => row.name);
}
