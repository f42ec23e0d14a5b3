/** Dimensional weight of a parcel: volume divided by the carrier's divisor. */
export default function dimWeight(args: { length: number; width: number; height: number; divisor: number }) {
  const { length, width, height, divisor } = args;
  if (divisor <= 0) throw new RangeError('divisor must be positive');
  return { weight: Math.ceil((length * width * height) / divisor) };
}
