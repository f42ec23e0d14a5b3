/** Reads KEY=value lines; comments and blank lines are skipped, quotes removed. */
export default function envFileParse(args: { text: string }): Record<string, string> {
  const entries = args.text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith('#'))
    .map((line): [string, string] => {
      const at = line.indexOf('=');
      if (at < 1) throw new SyntaxError(`expected KEY=value: ${line}`);
      return [line.slice(0, at).trim(), line.slice(at + 1).trim().replace(/^(['"])(.*)\1$/, '$2')];
    });
  return Object.fromEntries(entries);
}
