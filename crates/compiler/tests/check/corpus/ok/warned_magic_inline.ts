/** Thresholds in the logic. */
export default function grade(args: { score: number }): string {
  if (args.score > 89) return 'A';
  return args.score >= 74.5 ? 'B' : 'x'.repeat(17);
}
