const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
/** Copies a table. */
export default async function copyTable(args: { from: string; to: string }): Promise<{ rows: number }> {
  await tgp.exec_sql(`CREATE TABLE ${quote(args.to)} AS SELECT * FROM ${quote(args.from)}`);
  const [row] = await tgp.exec_sql<{ n: number }>(`SELECT COUNT(*) AS n FROM ${quote(args.to)}`);
  return { rows: row.n };
}
