/** Counts the business days (Monday to Friday) between two ISO dates, both included, without the given holidays. */
export default function businessDays(args: { from: string; to: string; holidays?: string[] }): { days: number } {
  const holidays = new Set(args.holidays ?? []);
  const current = new Date(`${args.from}T00:00:00Z`);
  const end = new Date(`${args.to}T00:00:00Z`);
  let days = 0;
  while (current <= end) {
    const day = current.getUTCDay();
    const iso = current.toISOString().slice(0, 10);
    if (day !== 0 && day !== 6 && !holidays.has(iso)) days++;
    current.setUTCDate(current.getUTCDate() + 1);
  }
  return { days };
}
