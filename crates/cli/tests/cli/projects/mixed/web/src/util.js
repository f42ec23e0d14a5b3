export function cents(amount) {
  const scaled = amount * 100;
  const rounded = Math.round(scaled);
  return rounded;
}
