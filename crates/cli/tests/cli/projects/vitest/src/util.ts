/** Cents, rounded. */
export function cents(amount: number): number {
  const scaled = amount * 100;
  const rounded = Math.round(scaled);
  return rounded;
}
