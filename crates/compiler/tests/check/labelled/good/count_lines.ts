/** Counts the lines of every file below a folder. */
export default async function countLines(args: { folder: string }): Promise<{ total: number; files: Record<string, number> }> {
  const paths = await tgp.list_files(args.folder);
  const counts = await Promise.all(paths.map(async (path) => (await tgp.read_file(path)).split('\n').length));
  return {
    total: counts.reduce((sum, count) => sum + count, 0),
    files: Object.fromEntries(paths.map((path, index) => [path, counts[index]])),
  };
}
