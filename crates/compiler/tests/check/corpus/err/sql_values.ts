const run = (sql: string, params: unknown[] = []) => tgp.exec_sql(sql, params);
const select = (name: string): string => `SELECT * FROM a WHERE name = '${name}'`;

/** Values that are pasted into SQL in many ways. */
export default async function values(args: { name: string; ids: string[]; from: Date; where: Record<string, string> }) {
  const { name } = args;
  const list = args.ids.map((id) => `'${id}'`).join(',');
  const conditions = ['deleted = 0'];
  if (name) conditions.push("name = '" + name + "'");
  let sql = 'SELECT * FROM a WHERE x = 1';
  sql += ` AND y = ${args.ids[0]}`;
  await tgp.exec_sql(`DELETE FROM a WHERE id IN (${list})`);
  await tgp.exec_sql('DELETE FROM a WHERE id IN (' + args.ids.join(',') + ')');
  await tgp.exec_sql(`DELETE FROM a WHERE ${conditions.join(' AND ')}`);
  await tgp.exec_sql(`UPDATE a SET b = ${String(name)} WHERE at < '${args.from.toISOString()}'`);
  await tgp.exec_sql(`INSERT INTO a (b) VALUES ('${JSON.stringify(args.where)}')`);
  await run(`DELETE FROM b WHERE x = ${args.name}`);
  await run('DELETE FROM b WHERE x = ?', [args.name]);
  await run(select(args.name));
  return tgp.exec_sql(sql);
}
