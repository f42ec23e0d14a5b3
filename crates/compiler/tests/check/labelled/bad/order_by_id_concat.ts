/** Loads an order. */
export default async function orderById(args: { id: string }) {
  const rows = await tgp.exec_sql('SELECT * FROM orders WHERE id = ' + args.id);
  return rows[0] ?? null;
}
