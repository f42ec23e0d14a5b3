/** Loads a template. */
export default async function template(args: { name: string }): Promise<string> {
  return tgp.read_file(`${__dirname}/templates/${args.name}`);
}
