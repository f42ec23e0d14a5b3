/** Records who changed what. */
export default async function audit(args: { user: string; entity: string; before: unknown; after: unknown }): Promise<{ id: string }> {
  const id = crypto.randomUUID();
  await tgp.exec_sql('INSERT INTO audit (id, user, entity, before, after, at) VALUES (?, ?, ?, ?, ?, ?)', [
    id, args.user, args.entity, JSON.stringify(args.before), JSON.stringify(args.after), new Date().toISOString(),
  ]);
  return { id };
}
