interface Args {
  path: string;
  baseUrl?: string;
}

/** Loads a document from the billing API. */
export default async function load({ path, baseUrl = 'https://api.stripe.com/v1' }: Args): Promise<unknown> {
  const response = await tgp.fetch(`${baseUrl}/${path}`, { method: 'GET' });
  if (!response.ok) throw new Error(`request failed: ${response.status}`);
  return response.json();
}
