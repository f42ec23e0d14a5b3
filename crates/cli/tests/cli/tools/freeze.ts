/** Never comes back. */
export default function freeze(args: { value: number }): number {
  while (true) {}
  return args.value;
}
