/** The next time a daily job runs at an hour and minute (UTC). */
export default function cronNext(args: { now: string; hour: number; minute: number }): string {
  const next = new Date(args.now);
  next.setUTCHours(args.hour, args.minute, 0, 0);
  if (next <= new Date(args.now)) next.setUTCDate(next.getUTCDate() + 1);
  return next.toISOString();
}
