/** Wraps a text at word boundaries. */
export default function textWrap(args: { text: string; width?: number }): string[] {
  const width = args.width ?? 80;
  const lines: string[] = [];
  let line = '';
  for (const word of args.text.split(/\s+/)) {
    if (line && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line ? `${line} ${word}` : word;
    }
  }
  if (line) lines.push(line);
  return lines;
}
