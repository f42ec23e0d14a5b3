/** Sums amounts per calendar month. */
export default function groupByMonth(args: { entries: { date: string; amount: number }[] }): Record<string, number> {
  return args.entries.reduce<Record<string, number>>((totals, { date, amount }) => {
    const month = date.slice(0, 7);
    return { ...totals, [month]: (totals[month] ?? 0) + amount };
  }, {});
}
