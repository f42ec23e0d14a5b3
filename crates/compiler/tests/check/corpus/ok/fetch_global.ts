/** Goes round the allowed URLs. */
export default async (args: { url: string }) => (await fetch(args.url)).text();
