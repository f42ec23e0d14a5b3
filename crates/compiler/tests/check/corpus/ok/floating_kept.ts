import assertValid from './assert_valid';
import notify from './notify';

const load = (path: string): Promise<string> => tgp.read_file(path);

/** Promises that are awaited, returned, collected or handled. */
export default async function kept(args: { ids: number[]; url: string; paths: string[] }) {
  assertValid(args);
  await tgp.exec_sql('DELETE FROM t');
  const pending = tgp.fetch(args.url);
  const other = notify({ url: args.url });
  const tasks = args.paths.map((path) => load(path));
  const more: Promise<string>[] = [];
  for (const path of args.paths) more.push(tgp.read_file(path));
  tgp.fetch(args.url).catch(() => tgp.log('no answer'));
  const [texts, others] = await Promise.all([Promise.all(tasks), Promise.all(more)]);
  const statuses = await Promise.all(args.ids.map(async (id) => (await tgp.exec_sql('SELECT ?', [id])).length));
  const first = await Promise.race([tgp.read_file('a'), tgp.read_file('b')]);
  const chained = await tgp.fetch(args.url).then((response) => response.text()).finally(() => tgp.log('done'));
  const { status } = await pending;
  await other;
  tgp.log(texts.length);
  return args.ids.length > 1 ? tgp.exec_tool('tools/a.ts', { statuses, first, chained, status, others }) : null;
}
