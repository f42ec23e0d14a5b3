/** Whatever the caller names. */
export default async (args: { name: string }) => [await import(args.name), await import(`./${args.name}`)];
