/** The billable weight of a parcel: its weight, or its volume over a divisor, whichever is more. */
export default function billableWeight(args: {
  length: number;
  width: number;
  height: number;
  weight: number;
  divisor: number;
}): number {
  const volume = args.size.length * args.size.width * args.size.height;
  return Math.max(args.weight, volume / args.divisor);
}
