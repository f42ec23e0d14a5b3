/** Turns records into a table: rows by one field, columns by another, sums in the cells. */
export default function pivotTable(args: { records: Record<string, string | number>[]; row: string; column: string; value: string }) {
  const table: Record<string, Record<string, number>> = {};
  for (const record of args.records) {
    const row = String(record[args.row]);
    const column = String(record[args.column]);
    table[row] ??= {};
    table[row][column] = (table[row][column] ?? 0) + Number(record[args.value]);
  }
  return table;
}
