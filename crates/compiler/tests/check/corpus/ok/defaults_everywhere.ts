/** Defaults may be any number, since an argument can replace them. */
export default function price(args: { net: number; taxRate?: number; rebate?: { above: number; rate: number } }, digits = 4) {
  const { net, taxRate = 0.19, rebate = { above: 500, rate: 0.05 } } = args;
  const limit = args.rebate?.above ?? 60 * 60 * 24 * 365;
  const factor = args.taxRate === undefined ? 1.19 : 1 + taxRate;
  return Number((net * factor - (net > rebate.above ? net * rebate.rate : limit)).toFixed(digits));
}
