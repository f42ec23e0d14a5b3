/** The first rows of a table. */
export default async function preview(args: { table: string; limit?: number }) {
  return tgp.exec_sql(`SELECT * FROM ${args.table} LIMIT ?`, [args.limit ?? 10]);
}
