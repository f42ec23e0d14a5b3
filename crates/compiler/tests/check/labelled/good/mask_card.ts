/** Hides all but the last four digits of a card number. */
export default function maskCard(args: { number: string }): string {
  const digits = args.number.replace(/\D/g, '');
  return digits.slice(-4).padStart(digits.length, '*');
}
