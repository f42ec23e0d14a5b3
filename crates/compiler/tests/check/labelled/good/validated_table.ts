/** Deletes rows of a table by age. */
export default async function prune(args: { table: string; days: number }): Promise<number> {
  const allowed = ['logs', 'events'];
  const table = allowed.find((name) => name === args.table);
  if (!table) throw new Error(`unknown table: ${args.table}`);
  const result = await tgp.exec_sql(`DELETE FROM ${table} WHERE created_at < datetime('now', ?)`, [`-${args.days} days`]);
  return result.changed;
}
