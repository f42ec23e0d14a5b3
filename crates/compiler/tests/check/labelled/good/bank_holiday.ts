const FIXED = ['01-01', '05-01', '12-25', '12-26'];
/** Whether a date is a holiday. */
export default (args: { date: string; extra?: string[] }): boolean => [...FIXED, ...(args.extra ?? [])].includes(args.date.slice(5));
