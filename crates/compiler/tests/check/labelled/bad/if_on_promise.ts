/** Creates a user unless there is one. */
export default async function ensureUser(args: { email: string }) {
  if (!tgp.exec_sql('SELECT 1 FROM users WHERE email = ?', [args.email])) {
    await tgp.exec_sql('INSERT INTO users (email) VALUES (?)', [args.email]);
  }
  return { email: args.email };
}
