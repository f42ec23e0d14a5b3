/** The parameters of a URL; repeated ones become lists. */
export default function parseQueryString(args: { url: string }): Record<string, string | string[]> {
  const params = new URL(args.url).searchParams;
  return Object.fromEntries(
    [...new Set(params.keys())].map((key) => {
      const values = params.getAll(key);
      return [key, values.length === 1 ? values[0] : values];
    }),
  );
}
