/** Deletes log rows that are older than a number of days. */
export default async function deleteOldLogs(args: { days: number; now: string }): Promise<void> {
  const cutoff = new Date(Date.parse(args.now) - args.days * 24 * 60 * 60 * 1000).toISOString();
  await tgp.exec_sql('DELETE FROM logs WHERE created_at < ?', [cutoff]);
}
