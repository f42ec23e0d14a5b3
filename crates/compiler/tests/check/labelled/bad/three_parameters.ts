/** A loan payment. */
export default function payment(principal: number, rate: number, months: number): number {
  return (principal * rate) / (1 - (1 + rate) ** -months);
}
