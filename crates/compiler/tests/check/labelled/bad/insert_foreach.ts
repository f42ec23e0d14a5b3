/** Inserts ids. */
export default async function insertIds(args: { ids: number[] }): Promise<number> {
  args.ids.forEach(async (id) => {
    await tgp.exec_sql('INSERT INTO queue (id) VALUES (?)', [id]);
  });
  return args.ids.length;
}
