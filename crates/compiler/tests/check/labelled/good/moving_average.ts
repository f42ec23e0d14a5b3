/** The simple moving average of a series. */
export default function movingAverage(args: { values: number[]; window: number }): number[] {
  return args.values
    .slice(0, args.values.length - args.window + 1)
    .map((_, start) => args.values.slice(start, start + args.window).reduce((a, b) => a + b, 0) / args.window);
}
