/** Forgets a path. */
export default function tool(args: { n: number }) {
  if (args.n > 0) {
    return 'positive';
  } else if (args.n < 0) {
    return;
  }
}
