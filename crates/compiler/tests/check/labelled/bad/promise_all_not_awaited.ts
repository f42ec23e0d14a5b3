/** Archives orders. */
export default async function archiveOrders(args: { ids: number[] }) {
  Promise.all(args.ids.map((id) => tgp.exec_sql('UPDATE orders SET archived = 1 WHERE id = ?', [id])));
  return { archived: args.ids.length };
}
