/** Remembers the last result. */
export default function remember(args: { value: number }): number {
  globalThis.lastValue = args.value;
  return args.value;
}
