/** A number as people of a country write it. */
export default function shown(args: { n: number; locale: string }): string {
  return args.n.toLocaleString(args.locale);
}
