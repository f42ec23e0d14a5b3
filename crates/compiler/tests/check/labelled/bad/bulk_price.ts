/** Raises prices of a category. */
export default async function raisePrices(args: { category: string; percent: number }): Promise<number> {
  const where = args.category ? `WHERE category = "${args.category}"` : '';
  const result = await tgp.exec_sql(`UPDATE products SET price = price * (1 + ${args.percent} / 100) ${where}`);
  return result.changed;
}
