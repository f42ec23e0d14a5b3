/** Asks a model. */
export default async function ask(args: { question: string }): Promise<string> {
  const response = await tgp.fetch('https://api.openai.com/v1/responses', {
    method: 'POST',
    headers: { authorization: 'Bearer sk-proj-4f9K2mQx7LwZ81RtYbN3vH6c' },
    body: JSON.stringify({ input: args.question }),
  });
  return response.text();
}
