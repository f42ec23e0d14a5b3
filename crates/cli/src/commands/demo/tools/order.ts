/** Records an order, and refuses one that costs nothing. */
export default async function order(args: { item: string; price: number }): Promise<string> {
  await tgp.exec_sql('INSERT INTO orders (item, price) VALUES (:item, :price)', args);
  if (args.price <= 0) throw new Error(`${args.item} must cost something`);
  return args.item;
}
