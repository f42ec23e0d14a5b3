/** A greeting in HTML. */
export default function hello(args: { name: string }) {
  return <b>Hello {args.name}</b>;
}
