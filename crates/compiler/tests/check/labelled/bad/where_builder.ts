/** Filters customers. */
export default async function filterCustomers(args: { city?: string; country?: string }) {
  let sql = 'SELECT * FROM customers WHERE 1 = 1';
  if (args.city) sql += ` AND city = '${args.city}'`;
  if (args.country) sql += ` AND country = '${args.country}'`;
  return tgp.exec_sql(sql);
}
