/** Runs steps one after the other, each on the result of the one before. */
export default async function pipeline(args: { steps: string[]; input: unknown }): Promise<unknown> {
  return args.steps.reduce<Promise<unknown>>(
    async (previous, step) => tgp.exec_tool(step, { input: await previous }),
    Promise.resolve(args.input),
  );
}
