type Filter = { field: 'status' | 'city' | 'total'; op: '=' | '>' | '<'; value: string | number };
const FIELDS: Record<string, string> = { status: 'o.status', city: 'c.city', total: 'o.total' };
const OPERATORS: Record<string, string> = { '=': '=', '>': '>', '<': '<' };
/** Orders that match all filters. */
export default async function filterOrders(args: { filters: Filter[] }) {
  const clauses = args.filters.map((filter) => `${FIELDS[filter.field]} ${OPERATORS[filter.op]} ?`);
  const where = clauses.length ? 'WHERE ' + clauses.join(' AND ') : '';
  return tgp.exec_sql(`SELECT o.* FROM orders o JOIN customers c ON c.id = o.customer_id ${where}`, args.filters.map((f) => f.value));
}
