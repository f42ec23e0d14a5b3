/**
 * Converts CSV text to an array of objects. Quoted fields and escaped quotes are supported.
 */
export default function csvToJson(args: { text: string; delimiter?: string }): Record<string, string>[] {
  const delimiter = args.delimiter ?? ',';
  const parseLine = (line: string): string[] => {
    const cells: string[] = [];
    let cell = '';
    let quoted = false;
    for (let i = 0; i < line.length; i++) {
      const char = line[i];
      if (quoted) {
        if (char === '"' && line[i + 1] === '"') {
          cell += '"';
          i++;
        } else if (char === '"') {
          quoted = false;
        } else {
          cell += char;
        }
      } else if (char === '"') {
        quoted = true;
      } else if (char === delimiter) {
        cells.push(cell);
        cell = '';
      } else {
        cell += char;
      }
    }
    cells.push(cell);
    return cells;
  };
  const [header, ...lines] = args.text.trim().split(/\r?\n/);
  const names = parseLine(header);
  return lines.map((line) => {
    const cells = parseLine(line);
    return Object.fromEntries(names.map((name, index) => [name, cells[index] ?? '']));
  });
}
