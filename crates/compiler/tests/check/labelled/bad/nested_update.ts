/** Applies a discount to an order. */
export default function applyDiscount(args: { order: { total: number; discount?: number }; rate: number }) {
  const order = args.order;
  order.discount = order.total * args.rate;
  order.total -= order.discount;
  return order;
}
