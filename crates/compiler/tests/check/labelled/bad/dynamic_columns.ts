/** Inserts a row into a table. */
export default async function insertRow(args: { table: string; row: Record<string, unknown> }) {
  const columns = Object.keys(args.row);
  const sql = `INSERT INTO ${args.table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
  await tgp.exec_sql(sql, Object.values(args.row));
  return { inserted: 1 };
}
