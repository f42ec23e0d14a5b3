/** What a parcel costs with this carrier. */
export default function price(args: { weight: number }): number {
  return Math.round(250 + args.weight * 120) / 100;
}
