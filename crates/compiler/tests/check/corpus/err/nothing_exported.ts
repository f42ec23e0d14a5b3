import { sum } from '@tgp/std';
/** Averages. */
const average = (args: { values: number[] }): number => sum(args.values) / args.values.length;
console.log(average);
export {};
