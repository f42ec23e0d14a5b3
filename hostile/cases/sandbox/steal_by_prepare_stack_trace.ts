// expect: OK
// result: []
const stolen: string[] = [];
(Error as never as { prepareStackTrace: unknown }).prepareStackTrace = (_: Error, sites: { getFunction(): { name: string } }[]) => {
  for (const site of sites) stolen.push(String(site.getFunction?.()?.name));
  return 'taken';
};
const probe = { get x() { new Error('probe').stack; return 1; }, toJSON() { void new Error('probe').stack; return 'json'; } };
export default async () => {
  console.log(probe);
  await tgp.read_file(probe as never).catch(() => 0);
  try { (null as never as () => void)(); } catch (error) { void (error as Error).stack; }
  return stolen;
};
