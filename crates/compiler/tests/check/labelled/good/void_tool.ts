/** Writes a greeting to a file. */
export default async (args: { path: string; name: string }): Promise<void> => {
  await tgp.write_file(args.path, `Hello ${args.name}`);
};
