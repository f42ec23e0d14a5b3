/** A duration as people of a country write it. */
export default function shown(args: { hours: number; locale: string }): string {
  return new Intl.DurationFormat(args.locale).format({ hours: args.hours });
}
