/** Posts a JSON payload to a webhook and returns the status. */
export default async function postWebhook(args: { url: string; payload: Record<string, unknown>; timeoutMs?: number }): Promise<number> {
  const response = await tgp.fetch(args.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(args.payload),
    signal: AbortSignal.timeout(args.timeoutMs ?? 10_000),
  });
  return response.status;
}
