/** Rounds up. */
export default function roundUp(args: { value: number }): number {
  return Maht.ceil(args.value);
}
