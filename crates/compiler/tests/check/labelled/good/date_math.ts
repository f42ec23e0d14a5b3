/** Due dates of a subscription. */
export default function dueDates(args: { start: string; count: number }): string[] {
  const date = new Date(args.start);
  return Array.from({ length: args.count }, () => {
    const iso = date.toISOString().slice(0, 10);
    date.setUTCMonth(date.getUTCMonth() + 1);
    return iso;
  });
}
