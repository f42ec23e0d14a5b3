/** Loads settings. */
export default async function settings(args: { path: string }): Promise<any> {
  return JSON.parse(await tgp.read_file(args.path));
}
