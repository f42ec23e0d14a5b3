/** Free slots of a day between meetings, in minutes since midnight. */
export default function meetingSlots(args: { meetings: { start: number; end: number }[]; dayStart?: number; dayEnd?: number; minutes?: number }) {
  const dayStart = args.dayStart ?? 9 * 60;
  const dayEnd = args.dayEnd ?? 17 * 60;
  const minutes = args.minutes ?? 30;
  const sorted = [...args.meetings].sort((a, b) => a.start - b.start);
  const slots: { start: number; end: number }[] = [];
  let free = dayStart;
  for (const meeting of [...sorted, { start: dayEnd, end: dayEnd }]) {
    if (meeting.start - free >= minutes) slots.push({ start: free, end: meeting.start });
    free = Math.max(free, meeting.end);
  }
  return slots;
}
