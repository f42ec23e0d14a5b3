import { fromCents, toCents } from './money';

/** The total of a shopping cart with decimal prices. */
export default function cartTotal(args: { items: { price: string; quantity: number }[] }): string {
  return fromCents(args.items.reduce((total, item) => total + toCents(item.price) * item.quantity, 0));
}
