/** Applies an expression to each value. */
export default function applyAll(args: { values: number[]; body: string }): number[] {
  const run = new Function('x', `return ${args.body}`) as (x: number) => number;
  return args.values.map(run);
}
