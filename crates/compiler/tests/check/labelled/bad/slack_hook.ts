/** Posts to the team channel. */
export default async function post(args: { text: string }): Promise<number> {
  const response = await tgp.fetch('https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX', {
    method: 'POST',
    body: JSON.stringify({ text: args.text }),
  });
  return response.status;
}
