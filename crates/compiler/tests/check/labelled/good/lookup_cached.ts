/** Adds the name of the country to each row, asking once per code. */
export default async function addCountry(args: { rows: { code: string }[]; api: string }) {
  const cache = new Map<string, Promise<string>>();
  const nameOf = (code: string): Promise<string> => {
    if (!cache.has(code)) cache.set(code, tgp.fetch(`${args.api}/${code}`).then((r) => r.text()));
    return cache.get(code)!;
  };
  return Promise.all(args.rows.map(async (row) => ({ ...row, country: await nameOf(row.code) })));
}
