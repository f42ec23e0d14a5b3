import fib from './fib';

/** Writes the Fibonacci numbers up to a position as CSV and gives their sum. */
export default async function series(args: { upTo: number; file: string }): Promise<{ sum: number }> {
  const rows = Array.from({ length: args.upTo }, (_, at) => ({ n: at + 1, value: fib({ n: at + 1 }) }));
  await tgp.write_file(args.file, rows.map((row) => `${row.n},${row.value}`).join('\n'));
  return { sum: rows.reduce((sum, row) => sum + row.value, 0) };
}
