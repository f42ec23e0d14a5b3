/** Reads a configuration. */
export default async function readConfig(args: { path: string }): Promise<unknown> {
  return JSON.parse(await tgp.readFile(args.path));
}
