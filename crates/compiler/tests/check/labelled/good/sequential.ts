/** Runs steps one after the other and stops at the first failure. */
export default async function runSteps(args: { steps: { tool: string; args: Record<string, unknown> }[] }) {
  const results: unknown[] = [];
  for (const step of args.steps) {
    try {
      results.push(await tgp.exec_tool(step.tool, step.args));
    } catch (error) {
      return { ok: false, failed: step.tool, reason: error instanceof Error ? error.message : String(error), results };
    }
  }
  return { ok: true, results };
}
