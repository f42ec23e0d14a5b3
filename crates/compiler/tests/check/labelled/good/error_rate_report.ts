import parseLogLines from './parse_log_lines';

/** The share of errors per hour in a log. */
export default function errorRateReport(args: { text: string; threshold?: number }): { hour: string; rate: number; alert: boolean }[] {
  const threshold = args.threshold ?? 0.05;
  const { entries } = parseLogLines({ text: args.text });
  const byHour = Object.groupBy(entries, (entry) => entry.time.slice(0, 13));
  return Object.entries(byHour).map(([hour, list = []]) => {
    const rate = list.filter((entry) => entry.level === 'ERROR').length / list.length;
    return { hour, rate, alert: rate > threshold };
  });
}
