/** Finds users by their name. */
export default async function find(args: { name: string }): Promise<unknown[]> {
  return tgp.exec_sql(`SELECT * FROM users WHERE name = '${args.name}'`);
}
