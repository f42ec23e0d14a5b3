/** Evaluates a formula. */
export default function formula(args: { formula: string; x: number }): number {
  const x = args.x;
  return eval(args.formula);
}
