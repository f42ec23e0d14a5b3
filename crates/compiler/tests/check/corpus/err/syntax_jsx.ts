/** Renders. */
export default function tool(args: { name: string }) {
  return <div className="x">{args.name}</div>;
}
