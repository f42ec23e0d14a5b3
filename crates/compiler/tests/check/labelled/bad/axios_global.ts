/** Loads a page. */
export default async function loadPage(args: { url: string }): Promise<string> {
  const response = await axios.get(args.url);
  return response.data;
}
