/** The text behind a URL; `fetch` keeps to the allowed URLs as `tgp.fetch` does. */
export default async (args: { url: string }): Promise<string> => (await fetch(args.url)).text();
