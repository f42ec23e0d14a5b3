/** Formats a name. */
export function formatName(args: { first: string; last: string }): string {
  return `${args.last}, ${args.first}`;
}
