/** Finds a user by name. */
export default async function userByName(args: { name: string }) {
  return tgp.exec_sql(`SELECT id, name FROM users WHERE name = '${args.name}'`);
}
