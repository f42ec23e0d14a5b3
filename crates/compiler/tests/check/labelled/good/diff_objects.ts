/** The keys that were added, removed or changed between two flat objects. */
export default function diffObjects(args: { before: Record<string, unknown>; after: Record<string, unknown> }) {
  const added = Object.keys(args.after).filter((key) => !(key in args.before));
  const removed = Object.keys(args.before).filter((key) => !(key in args.after));
  const changed = Object.keys(args.after).filter(
    (key) => key in args.before && JSON.stringify(args.before[key]) !== JSON.stringify(args.after[key]),
  );
  return { added, removed, changed };
}
