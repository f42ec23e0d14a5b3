interface Context {
  db: { query(sql: string): Promise<unknown[]> };
}

/** Counts users. */
export default async function countUsers(args: { active: boolean }, context: Context): Promise<number> {
  const rows = await context.db.query('SELECT id FROM users');
  return args.active ? rows.length : 0;
}
