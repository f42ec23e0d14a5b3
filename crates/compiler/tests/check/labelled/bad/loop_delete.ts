/** Deletes orders. */
export default async function deleteOrders(args: { ids: number[] }) {
  for (const id of args.ids) {
    await tgp.exec_sql(`DELETE FROM orders WHERE id = ${id}`);
  }
  return { deleted: args.ids.length };
}
