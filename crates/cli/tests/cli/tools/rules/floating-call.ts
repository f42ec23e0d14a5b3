/** Removes rows. */
export default async function remove(args: { ids: readonly number[] }): Promise<number> {
  args.ids.forEach(async (id) => {
    await tgp.exec_sql('DELETE FROM users WHERE id = ?', [id]);
  });
  return args.ids.length;
}
