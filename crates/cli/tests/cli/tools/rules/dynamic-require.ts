/** Requires whatever it is told. */
export default function load(args: { name: string }): unknown {
  return require(args.name);
}
