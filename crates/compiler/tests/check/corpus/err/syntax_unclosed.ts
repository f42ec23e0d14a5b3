/** Never ends. */
export default function tool(args: { a: number }) {
  return [args.a
