/** Waits for a job. */
export default async function waitForJob(args: { url: string }): Promise<unknown> {
  for (let attempt = 0; attempt < 17; attempt++) {
    const response = await tgp.fetch(args.url);
    if (response.ok) return response.json();
    await new Promise((resolve) => setTimeout(resolve, 2750));
  }
  throw new Error('the job did not finish');
}
