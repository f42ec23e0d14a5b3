/** A calendar event in the iCalendar format. */
export default function icsEvent(args: { title: string; start: string; end: string; uid?: string }): string {
  const stamp = (iso: string): string => new Date(iso).toISOString().replace(/[-:]|\.\d{3}/g, '');
  return [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//tgp//events//EN',
    'BEGIN:VEVENT',
    `UID:${args.uid ?? crypto.randomUUID()}`,
    `DTSTART:${stamp(args.start)}`,
    `DTEND:${stamp(args.end)}`,
    `SUMMARY:${args.title}`,
    'END:VEVENT',
    'END:VCALENDAR',
  ].join('\r\n');
}
