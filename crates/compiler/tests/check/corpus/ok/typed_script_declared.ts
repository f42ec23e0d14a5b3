/** Adds, with `args` declared. */
declare const args: { a: number; b: number };
const { a, b } = args;
sum(a, b);

function sum(left: number, right: number): number {
  return left + right;
}
