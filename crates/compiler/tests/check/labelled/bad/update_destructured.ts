/** Changes the status of an order. */
export default async function setStatus({ id, status }: { id: number; status: string }): Promise<{ id: number }> {
  await tgp.exec_sql(`UPDATE orders SET status = '${status}' WHERE id = ${id}`);
  return { id };
}
