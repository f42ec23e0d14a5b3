/** Formats by locale, which the engine ignores. */
export default (args: { n: number; day: string; text: string }) => [
  args.n.toLocaleString('de-DE'),
  new Date(args.day).toLocaleDateString(),
  new Date(args.day)['toLocaleTimeString'](),
  args.text.toLocaleUpperCase('tr'),
  args.text.toLocaleLowerCase('tr'),
  args.text.localeCompare('a', 'de'),
  args.text?.localeCompare('a', undefined, { numeric: true }),
];
