/** Names the class of a value. */
export default function kind(args: { value: object }): string {
  const same = args.value.constructor === Object;
  return same ? 'plain' : args.value.constructor.name;
}
