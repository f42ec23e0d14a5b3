/** The end of a month. */
export default function endOfMonth(args: { date: string }): string {
  return moment(args.date).endOf('month').format('YYYY-MM-DD');
}
