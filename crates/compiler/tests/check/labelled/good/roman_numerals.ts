const NUMERALS: [number, string][] = [
  [1000, 'M'], [900, 'CM'], [500, 'D'], [400, 'CD'], [100, 'C'], [90, 'XC'],
  [50, 'L'], [40, 'XL'], [10, 'X'], [9, 'IX'], [5, 'V'], [4, 'IV'], [1, 'I'],
];

/** Writes a number from 1 to 3999 in Roman numerals. */
export default function romanNumerals(args: { value: number }): string {
  if (!Number.isInteger(args.value) || args.value < 1 || args.value > 3999) throw new RangeError('value must be between 1 and 3999');
  let rest = args.value;
  let text = '';
  for (const [amount, letters] of NUMERALS) {
    while (rest >= amount) {
      text += letters;
      rest -= amount;
    }
  }
  return text;
}
