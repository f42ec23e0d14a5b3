const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Writes a number of bytes for people: 1536 is "1.5 KB". */
export default function humanSize(args: { bytes: number; digits?: number }): string {
  const exponent = args.bytes === 0 ? 0 : Math.min(Math.floor(Math.log(args.bytes) / Math.log(1024)), UNITS.length - 1);
  return `${(args.bytes / 1024 ** exponent).toFixed(args.digits ?? 1)} ${UNITS[exponent]}`;
}
