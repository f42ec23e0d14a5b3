interface User {
  id: number;
  name: string;
}

/** Loads a user. */
export default async function user(args: { url: string }): Promise<User> {
  const text = await (await tgp.fetch(args.url)).text();
  return text as unknown as User;
}
