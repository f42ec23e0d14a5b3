/** The charge request for a subscription. */
export default function charge(args: { amountCents: number }) {
  return { customer: 'cus_NffrFeUfNV2Hib', amount: args.amountCents };
}
