function byEmail(email: string): string {
  return `SELECT * FROM users WHERE email = '${email}'`;
}

/** Finds a user. */
export default async (args: { email: string }) => tgp.exec_sql(byEmail(args.email));
