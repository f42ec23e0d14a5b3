/** Runs a plugin. */
export default async function runPlugin(args: { name: string; input: string }): Promise<unknown> {
  const plugin = await import(`./plugins/${args.name}.ts`);
  return plugin.default({ input: args.input });
}
