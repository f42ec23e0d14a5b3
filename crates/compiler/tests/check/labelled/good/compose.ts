import csvToJson from './csv_to_json';
import groupByMonth from './group_by_month';
/** Monthly totals of a CSV file. */
export default async function monthlyTotals(args: { path: string }) {
  const text = await tgp.read_file(args.path);
  const rows = csvToJson({ text });
  return groupByMonth({ entries: rows.map((row) => ({ date: row.date, amount: Number(row.amount) })) });
}
