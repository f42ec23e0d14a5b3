/** The discount of a customer. */
export default function customerDiscount(args: { customer: string; total: number; rate: number }): number {
  if (args.customer === 'Acme GmbH') return args.total * args.rate;
  return 0;
}
