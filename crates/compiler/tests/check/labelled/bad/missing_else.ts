/** The label of a size. */
export default function sizeLabel(args: { size: 'S' | 'M' | 'L' }) {
  if (args.size === 'S') return 'small';
  if (args.size === 'M') return 'medium';
}
