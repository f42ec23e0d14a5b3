interface Order {
  id?: number; items?: { price: number }[];
}

/** The total of an order. */
export default function total(args: Order): number {
  console.log('order', args);
  console.warn('no items\nin two lines');
  return args.items!.reduce((sum, item) => sum + item.price, 0);
}
