/** Loads JSON from a URL and throws on a bad status. */
export default async function fetchJson(args: { url: string; headers?: Record<string, string> }): Promise<unknown> {
  const response = await tgp.fetch(args.url, { headers: { accept: 'application/json', ...args.headers } });
  if (!response.ok) throw new Error(`HTTP ${response.status} from ${args.url}`);
  return response.json();
}
