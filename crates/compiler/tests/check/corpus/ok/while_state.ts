/** Greatest common divisor. */
export default function gcd(args: { a: number; b: number }): number {
  let [a, b] = [Math.abs(args.a), Math.abs(args.b)];
  while (b !== 0) {
    [a, b] = [b, a % b];
  }
  return a;
}
