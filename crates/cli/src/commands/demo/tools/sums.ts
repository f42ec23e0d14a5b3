import fib from './fib';

/** Writes Fibonacci numbers up to a position as CSV and gives their sum. */
export default async function sums(args: { upTo: number; file: string }) {
  const positions = Array.from({ length: args.upTo }, (_, at) => at + 1);
  const rows = positions.map((n) => ({ n, value: fib({ n }) }));
  const lines = rows.map((row) => `${row.n},${row.value}`);
  await tgp.write_file(args.file, lines.join('\n'));
  return rows.reduce((sum, row) => sum + row.value, 0);
}
