const UPDATABLE = ['name', 'email', 'phone'] as const;
/** Updates only the fields that are given. */
export default async function patchRecord(args: { id: string; changes: Partial<Record<(typeof UPDATABLE)[number], string>> }) {
  const fields = UPDATABLE.filter((field) => args.changes[field] !== undefined);
  if (fields.length === 0) return { changed: 0 };
  const assignments = fields.map((field) => `${field} = ?`).join(', ');
  const values = fields.map((field) => args.changes[field]);
  const result = await tgp.exec_sql(`UPDATE contacts SET ${assignments} WHERE id = ?`, [...values, args.id]);
  return { changed: result.changed };
}
