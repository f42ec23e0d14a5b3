/** The gross price. */
export default function price(args: { net: number; rate?: number; rebate?: { above: number; rate: number } }, digits = 2) {
  const { net, rate = 0.19, rebate = { above: 500, rate: 0.05 } } = args;
  return Number((net * (1 + rate) - rebate.rate).toFixed(digits));
}
