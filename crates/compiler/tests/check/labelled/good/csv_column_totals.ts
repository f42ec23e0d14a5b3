import { parseCsv, sum } from '@tgp/std';

/** Adds up one numeric column of a CSV text, optionally per group. */
export default function csvColumnTotals(args: { csv: string; column: string; groupBy?: string }): Record<string, number> {
  const rows = parseCsv(args.csv);
  const totals: Record<string, number[]> = {};
  for (const row of rows) {
    const key = args.groupBy ? row[args.groupBy] : 'total';
    const value = Number(row[args.column]);
    if (Number.isNaN(value)) throw new Error(`not a number in column ${args.column}: ${row[args.column]}`);
    (totals[key] ??= []).push(value);
  }
  return Object.fromEntries(Object.entries(totals).map(([key, values]) => [key, sum(values)]));
}
