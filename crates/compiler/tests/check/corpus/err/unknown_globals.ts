declare const ambient: string;
/** Names that nothing declares. */
export default async function unknown(args: { values: number[]; path: string }) {
  const total = args.values.length;
  const text = await tgp.readFile(args.path);
  const rows = await tgp.select_all('users');
  return [Maht.max(total), totl, groupBy(args.values, String), ambient, text, rows, typeof Probed, Probed];
}
