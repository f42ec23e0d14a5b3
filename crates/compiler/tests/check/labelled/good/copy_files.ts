/** Copies text files of a folder to another, and lists them. */
export default async function copyFiles(args: { from: string; to: string; suffix?: string }): Promise<string[]> {
  const files = (await tgp.list_files(args.from)).filter((file) => file.endsWith(args.suffix ?? ''));
  await Promise.all(
    files.map(async (file) => {
      const content = await tgp.read_file(file);
      await tgp.write_file(file.replace(args.from, args.to), content);
    }),
  );
  return files;
}
