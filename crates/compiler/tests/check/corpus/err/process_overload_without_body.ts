function process(name: string): Promise<string>;

/** A signature without a body binds nothing. */
export default async (args: { name: string }) => process(args.name);
