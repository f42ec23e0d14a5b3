/** Loads data. */
export default async function load(args: { url: string }): Promise<unknown> {
  const response = await fetch(args.url);
  return response.json();
}
