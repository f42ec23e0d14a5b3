/** Adds. */
export default function add(a: number, b: number, c = 0): number {
  return a + b + c;
}
