/** Imports whatever it is told. */
export default async function load(args: { name: string }): Promise<unknown> {
  return import(args.name);
}
