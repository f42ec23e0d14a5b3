/** The URLs that answer. */
export default async function reachable(args: { urls: string[] }): Promise<string[]> {
  return args.urls.filter(async (url) => (await tgp.fetch(url)).ok);
}
