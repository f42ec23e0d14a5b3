/** The price of a kilogram or litre, for comparison. */
export default function unitPrice(args: { price: number; amount: number; unit: 'g' | 'kg' | 'ml' | 'l' }): number {
  const factor = args.unit === 'g' || args.unit === 'ml' ? 1000 : 1;
  return (args.price / args.amount) * factor;
}
