/** The quarter of a date, such as 2024-Q3. */
export default (args: { date: string }): string => {
  const date = new Date(args.date);
  return `${date.getUTCFullYear()}-Q${Math.floor(date.getUTCMonth() / 3) + 1}`;
};
