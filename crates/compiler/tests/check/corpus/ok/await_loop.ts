/** Deletes files page by page. */
export default async function clean(args: { directory: string; keep: string[] }): Promise<{ removed: number }> {
  let removed = 0;
  for (const path of await tgp.list_files(args.directory)) {
    if (args.keep.includes(path)) continue;
    await tgp.write_file(path, '');
    removed += 1;
  }
  return { removed };
}
