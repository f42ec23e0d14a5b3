/** Says itself that it returns nothing. */
export default async function tool(args: { path: string }): Promise<void> {
  await tgp.write_file(args.path, '');
}
