/** Writes files, reports that it has begun, and waits. */
export default async function waits(args: { url: string; ms: number }): Promise<string> {
  await tgp.write_file('tmp/new.txt', 'half of it');
  await tgp.write_file('tmp/old.txt', 'changed');
  await tgp.write_file('/tmp/scratch.txt', 'scratch');
  await tgp.fetch(args.url);
  await new Promise((done) => setTimeout(done, args.ms));
  return 'done';
}
