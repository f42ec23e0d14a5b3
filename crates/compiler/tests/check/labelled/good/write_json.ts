/** Saves a value as a formatted JSON file. */
export default async function writeJson(args: { path: string; value: unknown }): Promise<void> {
  await tgp.write_file(args.path, `${JSON.stringify(args.value, null, 2)}\n`);
}
