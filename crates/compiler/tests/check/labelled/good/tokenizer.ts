type Token = { kind: 'number' | 'word' | 'symbol'; text: string };
/** Splits source text into tokens. */
export default function tokenize(args: { source: string }): Token[] {
  const pattern = /(?<number>\d+)|(?<word>[a-z_]\w*)|(?<symbol>[^\s\w])/giy;
  const tokens: Token[] = [];
  let match: RegExpExecArray | null;
  while ((match = pattern.exec(args.source.replace(/\s+/g, ''))) !== null) {
    const groups = match.groups ?? {};
    const kind = groups.number ? 'number' : groups.word ? 'word' : 'symbol';
    tokens.push({ kind, text: match[0] });
  }
  return tokens;
}
