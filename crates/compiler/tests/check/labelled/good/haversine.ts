interface Point {
  lat: number;
  lon: number;
}

const EARTH_RADIUS_KM = 6371;

/** The great-circle distance between two points, in kilometres. */
export default function haversine(args: { from: Point; to: Point }): number {
  const toRadians = (degrees: number): number => (degrees * Math.PI) / 180;
  const dLat = toRadians(args.to.lat - args.from.lat);
  const dLon = toRadians(args.to.lon - args.from.lon);
  const a =
    Math.sin(dLat / 2) ** 2 +
    Math.cos(toRadians(args.from.lat)) * Math.cos(toRadians(args.to.lat)) * Math.sin(dLon / 2) ** 2;
  return EARTH_RADIUS_KM * 2 * Math.atan2(Math.sqrt(a), Math.sqrt(1 - a));
}
