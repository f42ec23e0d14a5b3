/** Counts findings of a review by their severity. */
export default function tally(args: { findings: { line: number; severity: string; note: string }[] }): Record<string, number> {
  return args.findings.reduce<Record<string, number>>(
    (counts, finding) => ({ ...counts, [finding.severity]: (counts[finding.severity] ?? 0) + 1 }),
    {},
  );
}
