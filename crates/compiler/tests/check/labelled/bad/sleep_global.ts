/** Polls a job. */
export default async function poll(args: { url: string; attempts: number }) {
  for (let i = 0; i < args.attempts; i++) {
    const response = await tgp.fetch(args.url);
    if (response.ok) return response.json();
    await sleep(1000);
  }
  return null;
}
