/** Loads several URLs at once and reports the status of each. */
export default async function parallelFetch(args: { urls: string[] }): Promise<{ url: string; status: number | null; error?: string }[]> {
  const results = await Promise.allSettled(args.urls.map((url) => tgp.fetch(url)));
  return results.map((result, index) =>
    result.status === 'fulfilled'
      ? { url: args.urls[index], status: result.value.status }
      : { url: args.urls[index], status: null, error: String(result.reason) },
  );
}
