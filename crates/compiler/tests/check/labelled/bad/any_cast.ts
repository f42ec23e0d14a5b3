/** A field of a JSON text. */
export default function field(args: { json: string; name: string }): unknown {
  return (JSON.parse(args.json) as any)[args.name];
}
