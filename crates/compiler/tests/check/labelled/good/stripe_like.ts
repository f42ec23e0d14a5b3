const BASE = 'https://api.stripe.com/v1';
/** The newest charges of an account. */
export default async function charges(args: { apiKey: string; limit?: number }): Promise<unknown> {
  const query = new URLSearchParams({ limit: String(args.limit ?? 10) });
  const response = await tgp.fetch(`${BASE}/charges?${query}`, { headers: { Authorization: `Bearer ${args.apiKey}` } });
  return response.json();
}
