let calls = 0;

/** How often it was called. */
export default function count(args: { by: number }): number {
  calls += args.by;
  return calls;
}
