/** The length of a value. */
export default function lengthOf(args: { value: string | number }): number {
  // @ts-ignore
  return args.value.length;
}
