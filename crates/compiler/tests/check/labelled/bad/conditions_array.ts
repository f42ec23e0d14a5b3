/** Invoices by filters. */
export default async function invoices(args: { customer?: string; minTotal?: number }) {
  const conditions = ['deleted = 0'];
  if (args.customer) conditions.push(`customer = '${args.customer}'`);
  if (args.minTotal) conditions.push(`total >= ${args.minTotal}`);
  return tgp.exec_sql(`SELECT * FROM invoices WHERE ${conditions.join(' AND ')}`);
}
