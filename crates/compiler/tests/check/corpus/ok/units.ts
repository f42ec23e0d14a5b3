/** Hours between two instants. */
export default function hours(args: { from: string; to: string }): number {
  return (Date.parse(args.to) - Date.parse(args.from)) / (1000 * 60 * 60);
}
