/** The history, newest first. */
export default function newestFirst(args: { events: string[] }): string[] {
  const events = args.events;
  events.reverse();
  return events;
}
