/** Users who downgraded in a period, pipe-delimited. */
export default async function downgraded(args: { from: string; to: string; separator?: string }): Promise<string> {
  const sql = `
    SELECT u.name, c.changed_at
    FROM users u JOIN plan_changes c ON c.user_id = u.id
    WHERE c.kind = 'downgrade' AND c.changed_at >= ? AND c.changed_at < ?`;
  const rows = await tgp.exec_sql(sql, [args.from, args.to]);
  return rows.map((row: { name: string; changed_at: string }) => [row.name, row.changed_at].join(args.separator ?? '|')).join('\n');
}
