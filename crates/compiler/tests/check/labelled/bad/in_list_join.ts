/** Products with the given SKUs. */
export default async function productsBySku(args: { skus: string[] }) {
  const list = args.skus.map((sku) => `'${sku}'`).join(',');
  return tgp.exec_sql(`SELECT * FROM products WHERE sku IN (${list})`);
}
