const TABLE = 'orders';
const COLUMNS = { name: 'name', price: 'unit_price' } as const;
enum Direction { Up = 'ASC', Down = 'DESC' }

/** Statements that are joined from constants, placeholders, numbers and checked names. */
export default async function joined(args: { ids: number[]; sort: keyof typeof COLUMNS; table: string; limit: number; name?: string; sql: string }) {
  const marks = args.ids.map(() => '?').join(', ');
  const filled = Array(args.ids.length).fill('?').join(', ');
  const where = args.name ? 'WHERE name = ?' : '';
  const conditions: string[] = [];
  if (args.name) conditions.push('name = ?');
  const { table } = args;
  if (!/^[a-z_]+$/.test(table)) throw new Error('not a table');
  let sql = `SELECT * FROM ${TABLE} ${where}`;
  sql += ' ORDER BY name';
  for (const name of ['a', 'b']) await tgp.exec_sql(`DELETE FROM ${name}`);
  return [
    await tgp.exec_sql(`SELECT * FROM ${TABLE} WHERE id IN (${marks})`, args.ids),
    await tgp.exec_sql(`SELECT * FROM ${TABLE} WHERE id IN (${filled})`, args.ids),
    await tgp.exec_sql(`SELECT * FROM ${table} ORDER BY ${COLUMNS[args.sort]} ${Direction.Up} LIMIT ${Number(args.limit)}`),
    await tgp.exec_sql('SELECT * FROM ' + TABLE + ' WHERE ' + conditions.join(' AND '), [args.name]),
    await tgp.exec_sql(sql, args.name ? [args.name] : []),
    await tgp.exec_sql(args.sql),
  ];
}
