/** Names of tables and columns that the caller decides. */
export default async (args: { table: string; column: string; direction: string }) =>
  tgp.exec_sql(`SELECT ${args.column} FROM ${args.table} ORDER BY ${args.column} ${args.direction}`);
