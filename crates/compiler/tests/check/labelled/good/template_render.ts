/** Replaces {{name}} in a template by values; unknown names are an error. */
export default function templateRender(args: { template: string; values: Record<string, string | number> }): string {
  return args.template.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name: string) => {
    if (!(name in args.values)) throw new Error(`no value for {{${name}}}`);
    return String(args.values[name]);
  });
}
