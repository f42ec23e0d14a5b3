/** Formats by locale. */
export default (args: { n: number; day: string; text: string; zone: string }) => [
  args.n.toLocaleString('de-DE'),
  new Date(args.day).toLocaleDateString('en-US', { timeZone: args.zone }),
  new Date(args.day)['toLocaleTimeString'](),
  args.text.toLocaleUpperCase('tr'),
  args.text?.localeCompare('a', undefined, { numeric: true }),
  new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' }).format(args.n),
  globalThis.Intl.supportedValuesOf('timeZone').length,
];
