/** Distinct values. */
export default function distinct(args: { values: string[] }): string[] {
  return _.uniq(args.values);
}
