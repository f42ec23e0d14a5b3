/** Parts of Intl that the engine does not have. */
export default (args: { text: string; tag: string }) => [
  new Intl.DurationFormat(args.tag),
  new globalThis.Intl.Numberformat(args.tag),
  Reflect.get(Intl, 'v8BreakIterator'),
];
