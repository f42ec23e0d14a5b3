/** Formats a duration. */
export default (args: { hours: number }) => [
  new Intl.DurationFormat('de-DE').format(args),
  Intl['DurationFormat'],
];
