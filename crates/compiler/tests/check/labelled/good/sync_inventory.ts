import paginateApi from './paginate_api';

interface Stock {
  sku: string;
  quantity: number;
}

/** Updates the stock table from a supplier's API; returns how many rows changed. */
export default async function syncInventory(args: { supplierUrl: string; token: string }): Promise<{ updated: number }> {
  const items = (await paginateApi({ url: args.supplierUrl, token: args.token })) as Stock[];
  let updated = 0;
  for (const item of items) {
    const result = await tgp.exec_sql('UPDATE stock SET quantity = ? WHERE sku = ? AND quantity <> ?', [item.quantity, item.sku, item.quantity]);
    updated += result.changed;
  }
  tgp.log(`updated ${updated} of ${items.length}`);
  return { updated };
}
