/** Fits a line through points by least squares. */
export default function linearRegression(args: { points: [number, number][] }): { slope: number; intercept: number; r2: number } {
  const n = args.points.length;
  if (n < 2) throw new RangeError('two points are needed');
  const meanX = args.points.reduce((sum, [x]) => sum + x, 0) / n;
  const meanY = args.points.reduce((sum, [, y]) => sum + y, 0) / n;
  let sxy = 0;
  let sxx = 0;
  let syy = 0;
  for (const [x, y] of args.points) {
    sxy += (x - meanX) * (y - meanY);
    sxx += (x - meanX) ** 2;
    syy += (y - meanY) ** 2;
  }
  const slope = sxy / sxx;
  return { slope, intercept: meanY - slope * meanX, r2: sxy ** 2 / (sxx * syy) };
}
