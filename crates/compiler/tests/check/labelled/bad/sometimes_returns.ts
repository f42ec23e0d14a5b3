/** The grade of a score. */
export default function grade(args: { score: number; limit: number }) {
  if (args.score >= args.limit) {
    return 'passed';
  } else if (args.score > 0) {
    return 'failed';
  }
}
