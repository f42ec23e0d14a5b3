/** Multiplies two matrices. */
export default function matrixMultiply(args: { a: number[][]; b: number[][] }): number[][] {
  if (args.a[0].length !== args.b.length) throw new RangeError('the columns of a must be as many as the rows of b');
  return args.a.map((row) => args.b[0].map((_, column) => row.reduce((sum, value, index) => sum + value * args.b[index][column], 0)));
}
