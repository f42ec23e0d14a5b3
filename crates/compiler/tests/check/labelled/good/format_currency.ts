/** Formats an amount of money for people, such as "€1,234.50". */
export default function formatCurrency(args: { amount: number; currency: string; locale?: string }): string {
  return new Intl.NumberFormat(args.locale ?? 'en-US', { style: 'currency', currency: args.currency }).format(args.amount);
}
