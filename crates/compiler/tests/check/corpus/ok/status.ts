/** Whether a page exists. */
export default async function exists(args: { url: string }): Promise<boolean> {
  const response = await tgp.fetch(args.url);
  return response.status !== 404;
}
