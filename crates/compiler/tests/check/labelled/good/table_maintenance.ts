/** Rebuilds the indexes of tables with a prefix. */
export default async function reindex(args: { prefix: string }): Promise<string[]> {
  const tables = await tgp.exec_sql<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE ?", [`${args.prefix}%`]);
  for (const { name } of tables) {
    await tgp.exec_sql(`REINDEX "${name.replaceAll('"', '""')}"`);
  }
  return tables.map(({ name }) => name);
}
