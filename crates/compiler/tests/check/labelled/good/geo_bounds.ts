/** The bounding box around a point, in degrees. */
export default function bounds(args: { lat: number; lon: number; km: number }) {
  const dLat = args.km / 111.32;
  const dLon = args.km / (111.32 * Math.cos((args.lat * Math.PI) / 180));
  return { south: args.lat - dLat, north: args.lat + dLat, west: args.lon - dLon, east: args.lon + dLon };
}
