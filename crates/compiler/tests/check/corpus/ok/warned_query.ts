/** Reads rows in ways that read none. */
export default async function read(args: { id: number }): Promise<number> {
  tgp.query('SELECT 1');
  const rows = tgp.query('SELECT id FROM t WHERE id = ?', [args.id]);
  let count = 0;
  for await (const row of rows) count += Number(row.id);
  return count;
}
