import { toCsv } from '@tgp/std';

const EXPORTABLE = new Set(['customers', 'orders', 'invoices']);

/** Writes a table to a CSV file. */
export default async function exportTable(args: { table: string; path: string }): Promise<{ rows: number }> {
  if (!EXPORTABLE.has(args.table)) throw new Error(`table ${args.table} may not be exported: expected one of ${[...EXPORTABLE].join(', ')}`);
  const rows = await tgp.exec_sql(`SELECT * FROM ${args.table}`);
  await tgp.write_file(args.path, toCsv(rows));
  return { rows: rows.length };
}
