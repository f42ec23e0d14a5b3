import { addDays, format, parseISO } from 'date-fns';

/** All dates from a start for a number of days. */
export default function dateRange(args: { start: string; days: number; pattern?: string }): string[] {
  const start = parseISO(args.start);
  return Array.from({ length: args.days }, (_, offset) => format(addDays(start, offset), args.pattern ?? 'yyyy-MM-dd'));
}
