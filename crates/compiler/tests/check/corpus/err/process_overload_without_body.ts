function importScripts(url: string): Promise<string>;

/** A signature without a body binds nothing. */
export default async (args: { url: string }) => importScripts(args.url);
