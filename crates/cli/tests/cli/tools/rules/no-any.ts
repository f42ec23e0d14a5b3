/** The same value. */
export default function same(args: { value: any }): unknown {
  return args.value;
}
