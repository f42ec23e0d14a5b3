/** Looks a word up. */
export default async function lookup(args: { word: string }): Promise<unknown> {
  const response = await tgp.fetch(`https://api.dictionary.dev/entries/${args.word}`);
  return response.json();
}
