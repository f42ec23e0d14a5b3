/** Finds products by optional filters. */
export default async function searchProducts(args: { name?: string; minPrice?: number; maxPrice?: number; inStock?: boolean }) {
  const conditions: string[] = [];
  const params: unknown[] = [];
  if (args.name !== undefined) {
    conditions.push('name LIKE ?');
    params.push(`%${args.name}%`);
  }
  if (args.minPrice !== undefined) {
    conditions.push('price >= ?');
    params.push(args.minPrice);
  }
  if (args.maxPrice !== undefined) {
    conditions.push('price <= ?');
    params.push(args.maxPrice);
  }
  if (args.inStock) conditions.push('stock > 0');
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
  return tgp.exec_sql(`SELECT id, name, price, stock FROM products ${where} ORDER BY name`, params);
}
