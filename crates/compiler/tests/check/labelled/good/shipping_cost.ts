interface Zone {
  baseCents: number;
  perKgCents: number;
}

/** The shipping cost of a parcel by the rates of its zone. */
export default function shippingCost(args: { weightKg: number; zone: string; rates: Record<string, Zone> }): number {
  const rate = args.rates[args.zone];
  if (!rate) throw new Error(`unknown zone ${args.zone}: expected one of ${Object.keys(args.rates).join(', ')}`);
  return rate.baseCents + Math.ceil(args.weightKg) * rate.perKgCents;
}
