/** Fetches a URL, and tries again with growing delays when the server fails. */
export default async function fetchWithRetry(args: { url: string; attempts?: number; baseDelayMs?: number }): Promise<{ status: number; body: string }> {
  const attempts = args.attempts ?? 3;
  const baseDelayMs = args.baseDelayMs ?? 200;
  const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
  let lastError: unknown;
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      const response = await tgp.fetch(args.url);
      if (response.status < 500) return { status: response.status, body: await response.text() };
      lastError = new Error(`HTTP ${response.status}`);
    } catch (error) {
      lastError = error;
    }
    await sleep(baseDelayMs * 2 ** attempt);
  }
  throw lastError;
}
