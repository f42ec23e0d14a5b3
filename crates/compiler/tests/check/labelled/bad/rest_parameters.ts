/** The largest of some numbers. */
export default function largest(first: number, ...others: number[]): number {
  return Math.max(first, ...others);
}
