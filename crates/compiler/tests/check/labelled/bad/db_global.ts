/** Lists products. */
export default async function listProducts(args: { limit: number }) {
  return await db.query('SELECT * FROM products LIMIT ?', [args.limit]);
}
