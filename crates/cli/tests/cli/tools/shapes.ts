/** A result of every kind. */
export default function shapes(args: { kind: string }): unknown {
  const kinds: Record<string, unknown> = { text: 'two\nlines', list: [1, 2], object: { a: { b: null } }, nothing: undefined };
  return kinds[args.kind];
}
