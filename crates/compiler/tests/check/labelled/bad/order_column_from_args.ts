/** Lists employees in an order. */
export default async function employees(args: { sortBy: string }) {
  return tgp.exec_sql('SELECT name, salary FROM employees ORDER BY ' + args.sortBy);
}
