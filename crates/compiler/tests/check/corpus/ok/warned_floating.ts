import notify, { audit } from './notify';

async function save(id: number): Promise<void> {
  await tgp.exec_sql('INSERT INTO t VALUES (?)', [id]);
}

/** Promises that are lost in many ways. */
export default async function floating(args: { ids: number[]; url: string }) {
  tgp.exec_sql('DELETE FROM t');
  void tgp.fetch(args.url);
  args.ids.length > 1 && tgp.write_file('a', 'b');
  args.ids.forEach(async (id) => await save(id));
  args.ids.forEach((id) => save(id));
  args.ids.map((id) => save(id));
  args.ids.map(save);
  Promise.all(args.ids.map(save));
  notify({ url: args.url });
  audit(args.url);
  await audit(args.url);
  const never = tgp.read_file('a');
  const rows = tgp.exec_sql('SELECT 1');
  const [first] = tgp.exec_sql('SELECT 2');
  const text = `${tgp.read_file('b')}`;
  if (tgp.list_files('c')) tgp.fetch(args.url).then((response) => response.text());
  const kept = args.ids.filter(async (id) => (await tgp.exec_sql('SELECT ?', [id])).length > 0);
  return [rows.length, first, text, kept, tgp.fetch(args.url).ok];
}
