/** When requests may be sent, given a limit per minute. */
export default function plan(args: { count: number; perMinute: number; start: string }): string[] {
  const gap = 60_000 / args.perMinute;
  const start = Date.parse(args.start);
  return Array.from({ length: args.count }, (_, i) => new Date(start + i * gap).toISOString());
}
