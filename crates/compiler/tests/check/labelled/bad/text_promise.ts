/** The title of a page. */
export default async function title(args: { url: string }): Promise<string> {
  const html = await tgp.fetch(args.url).text();
  return /<title>(.*?)<\/title>/.exec(html)?.[1] ?? '';
}
