/** Formats money. */
export default (args: { amount: number }) => new Intl.NumberFormat('de-DE').format(args.amount);
