/** What the sandbox brings along. */
export default async function digest(args: { text: string }): Promise<string> {
  const bytes = new TextEncoder().encode(args.text);
  const copy = structuredClone({ bytes: [...bytes] });
  await new Promise<void>((resolve) => setTimeout(resolve, 0));
  return btoa(String.fromCharCode(...copy.bytes));
}
