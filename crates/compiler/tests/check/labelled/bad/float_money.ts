/** The sum of prices. */
export default (args: { prices: string[] }): number => args.prices.map(parseFloat).reduce((sum, price) => sum + price, 0);
