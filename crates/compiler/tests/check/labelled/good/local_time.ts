/** The local date and time of a customer in a time zone. */
export default function localTime(args: { instant: string; timeZone: string }): string {
  return new Date(args.instant).toLocaleString('en-GB', { timeZone: args.timeZone });
}
