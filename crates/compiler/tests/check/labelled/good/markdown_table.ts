/** Renders records as a Markdown table with aligned columns. */
export default function markdownTable(args: { rows: Record<string, string | number | null>[] }): string {
  if (args.rows.length === 0) return '';
  const columns = Object.keys(args.rows[0]);
  const text = (value: string | number | null): string => String(value ?? '').replaceAll('|', '\\|');
  const widths = columns.map((column) => Math.max(3, column.length, ...args.rows.map((row) => text(row[column]).length)));
  const line = (cells: string[]): string => `| ${cells.map((cell, index) => cell.padEnd(widths[index])).join(' | ')} |`;
  return [
    line(columns),
    line(widths.map((width) => '-'.repeat(width))),
    ...args.rows.map((row) => line(columns.map((column) => text(row[column])))),
  ].join('\n');
}
