/** A duration in words. */
export default function durationText(args: { hours: number; minutes: number; locale: string }): string {
  return new Intl.DurationFormat(args.locale, { style: 'long' }).format({ hours: args.hours, minutes: args.minutes });
}
