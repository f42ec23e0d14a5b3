/** Counts words. */
export const run = async (args: { path: string }): Promise<number> => {
  const text = await tgp.read_file(args.path);
  return text.split(/\s+/).length;
};
