/** Checks a card number with the Luhn algorithm. */
export default function luhn(args: { number: string }): boolean {
  const digits = args.number.replace(/\D/g, '').split('').reverse().map(Number);
  if (digits.length < 12) return false;
  const total = digits.reduce((sum, digit, index) => {
    if (index % 2 === 0) return sum + digit;
    const doubled = digit * 2;
    return sum + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return total % 10 === 0;
}
