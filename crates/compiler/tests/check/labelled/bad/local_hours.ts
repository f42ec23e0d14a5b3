/** Whether a shop is open. */
export default function isOpen(args: { at: string; opens: number; closes: number }): boolean {
  const hour = new Date(args.at).getHours();
  return hour >= args.opens && hour < args.closes;
}
