/** Writes a file, and fails afterwards when it is told to. */
export default async function write(args: { file: string; text: string; fail?: boolean }): Promise<number> {
  await tgp.write_file(args.file, args.text);
  console.log('wrote', args.file);
  if (args.fail) throw new Error('failed on request');
  return args.text.length;
}
