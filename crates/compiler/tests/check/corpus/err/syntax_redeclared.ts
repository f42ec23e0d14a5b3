/** Declares a name twice. */
export default function tool(args: { a: number }): number {
  const a = args.a;
  const a = 1;
  return a;
}
