/** The commission of a sale. */
export default (args: { sale: number }): number => (args.sale < 15000 ? args.sale * 0.035 : args.sale * 0.0475 + 120);
