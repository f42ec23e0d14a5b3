const SORT_COLUMNS = { name: 'name', created: 'created_at', price: 'unit_price' } as const;

/** A page of products in a chosen order. */
export default async function sortedTable(args: { sortBy: keyof typeof SORT_COLUMNS; descending?: boolean; page?: number; pageSize?: number }) {
  const column = SORT_COLUMNS[args.sortBy];
  const direction = args.descending ? 'DESC' : 'ASC';
  const pageSize = args.pageSize ?? 25;
  const offset = ((args.page ?? 1) - 1) * pageSize;
  return tgp.exec_sql(`SELECT id, name, unit_price FROM products ORDER BY ${column} ${direction} LIMIT ? OFFSET ?`, [pageSize, offset]);
}
