/** Loads the orders with the given ids. */
export default async function ordersInList(args: { ids: number[] }): Promise<unknown[]> {
  if (args.ids.length === 0) return [];
  const placeholders = args.ids.map(() => '?').join(', ');
  return tgp.exec_sql(`SELECT * FROM orders WHERE id IN (${placeholders})`, args.ids);
}
