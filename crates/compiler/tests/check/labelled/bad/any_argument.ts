/** The keys of an object. */
export default function keys(args: { value: any }): string[] {
  return Object.keys(args.value);
}
