/**
 * Turns rows into CSV text.
 * @param args.rows the records
 * @param args.delimiter defaults to a comma
 */
interface Args {
  rows: Record<string, string | number | null>[];
  delimiter?: string;
}

const quote = (value: string | number | null): string => {
  const text = value === null ? '' : String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export default function toCsv({ rows, delimiter = ',' }: Args): string {
  const columns = Object.keys(rows[0] ?? {});
  const lines = rows.map((row) => columns.map((column) => quote(row[column] ?? null)).join(delimiter));
  return [columns.join(delimiter), ...lines].join('\n');
}
