/** Fetches URLs with at most some at a time. */
export default async function fetchLimited(args: { urls: string[]; concurrency?: number }): Promise<Record<string, number>> {
  const queue = [...args.urls];
  const statuses: Record<string, number> = {};
  const worker = async (): Promise<void> => {
    for (let url = queue.shift(); url !== undefined; url = queue.shift()) {
      const response = await tgp.fetch(url);
      statuses[url] = response.status;
    }
  };
  await Promise.all(Array.from({ length: args.concurrency ?? 4 }, worker));
  return statuses;
}
