/** The area of a rectangle. */
export function area(args: { width: number; height: number }): number {
  return args.width * args.height;
}
/** The tool itself. */
export default function rectangle(args: { width: number; height: number }) {
  return { area: area(args), perimeter: 2 * (args.width + args.height) };
}
