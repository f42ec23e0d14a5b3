/** Inserts a record into the measurements table. */
export default async function insertRecord(args: { record: { sensor: string; value: number; at: string } }) {
  const columns = ['sensor', 'value', 'at'] as const;
  const sql = `INSERT INTO measurements (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
  const result = await tgp.exec_sql(sql, columns.map((column) => args.record[column]));
  return { inserted: result.changed };
}
