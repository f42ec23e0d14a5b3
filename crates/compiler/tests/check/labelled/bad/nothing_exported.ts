import { sum } from '@tgp/std';

/** Averages values. */
function average(args: { values: number[] }): number {
  return sum(args.values) / args.values.length;
}
