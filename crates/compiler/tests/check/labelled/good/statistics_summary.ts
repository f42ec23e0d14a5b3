import { mean, median, quantile } from '@tgp/std';

/** Mean, median, quartiles and standard deviation of numbers. */
export default function statisticsSummary(args: { values: number[] }) {
  const { values } = args;
  if (values.length === 0) throw new RangeError('at least one value is needed');
  const average = mean(values) as number;
  const variance = values.reduce((sum, value) => sum + (value - average) ** 2, 0) / values.length;
  return {
    count: values.length,
    mean: average,
    median: median(values),
    q1: quantile(values, 0.25),
    q3: quantile(values, 0.75),
    standardDeviation: Math.sqrt(variance),
  };
}
