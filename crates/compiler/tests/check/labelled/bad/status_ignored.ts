/** Loads prices. */
export default async function prices(args: { url: string }): Promise<unknown> {
  const response = await tgp.fetch(args.url);
  return response.json();
}
