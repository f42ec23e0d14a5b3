/** The initials of a name, at most three. */
export default (args: { name: string }): string =>
  args.name
    .split(/[\s-]+/)
    .filter(Boolean)
    .slice(0, 3)
    .map((part) => part[0].toUpperCase())
    .join('');
