/** Applies migrations in order. */
export default async function migrate(args: { migrations: { id: number; sql: string }[] }): Promise<number[]> {
  const done = await tgp.exec_sql<{ id: number }>('SELECT id FROM migrations');
  const known = new Set(done.map((row) => row.id));
  const pending = args.migrations.filter((migration) => !known.has(migration.id)).sort((a, b) => a.id - b.id);
  return pending.reduce<Promise<number[]>>(async (previous, migration) => {
    const ids = await previous;
    await tgp.exec_sql(migration.sql);
    await tgp.exec_sql('INSERT INTO migrations (id) VALUES (?)', [migration.id]);
    return [...ids, migration.id];
  }, Promise.resolve([]));
}
