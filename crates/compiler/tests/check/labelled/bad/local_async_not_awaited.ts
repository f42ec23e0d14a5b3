async function saveRow(row: { id: string; value: number }): Promise<void> {
  await tgp.exec_sql('INSERT INTO metrics (id, value) VALUES (?, ?)', [row.id, row.value]);
}

/** Saves metrics. */
export default async function saveMetrics(args: { rows: { id: string; value: number }[] }) {
  for (const row of args.rows) {
    saveRow(row);
  }
  return args.rows.length;
}
