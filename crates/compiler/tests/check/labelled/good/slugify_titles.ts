/** Makes unique URL slugs from titles. */
export default function slugifyTitles(args: { titles: string[] }): string[] {
  const seen = new Map<string, number>();
  return args.titles.map((title) => {
    const base = title
      .normalize('NFKD')
      .replace(/[\u0300-\u036f]/g, '')
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '');
    const count = seen.get(base) ?? 0;
    seen.set(base, count + 1);
    return count === 0 ? base : `${base}-${count + 1}`;
  });
}
