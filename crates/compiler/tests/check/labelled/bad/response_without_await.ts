/** Loads a user profile. */
export default async function loadProfile(args: { url: string }): Promise<unknown> {
  const response = tgp.fetch(args.url);
  return response.json();
}
