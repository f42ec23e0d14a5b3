import { format } from 'date-fns';

/**
 * Formats a date.
 *
 * Uses {@link format} of date-fns, see {@link https://date-fns.org|its pages}.
 * @param args.date ISO text
 * @returns the formatted date
 */
const formatDate = (args: { date: string; pattern?: string }): string =>
  format(new Date(args.date), args.pattern ?? 'yyyy-MM-dd');

export default formatDate;
