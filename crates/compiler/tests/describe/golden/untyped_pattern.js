/**
 * Rounds.
 * @param {number} value the number
 * @param digits how many digits
 */
export default function round({ value, digits = 2, mode: how = 'half', ...rest }) {
  return Number(value.toFixed(digits));
}
