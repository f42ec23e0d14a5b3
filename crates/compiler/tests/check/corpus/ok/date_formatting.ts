import { addDays, format, parseISO } from 'date-fns';

/** The due date of an invoice, as ISO text. */
export default function dueDate(args: { issued: string; days: number; pattern?: string }): string {
  return format(addDays(parseISO(args.issued), args.days), args.pattern ?? 'yyyy-MM-dd');
}
