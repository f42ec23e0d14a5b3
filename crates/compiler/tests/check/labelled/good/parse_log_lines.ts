interface Entry {
  time: string;
  level: string;
  message: string;
}

const LINE = /^(\S+)\s+(DEBUG|INFO|WARN|ERROR)\s+(.*)$/;

/** Parses log lines of the form "TIME LEVEL message"; lines that do not match are counted. */
export default function parseLogLines(args: { text: string }): { entries: Entry[]; unparsed: number } {
  const lines = args.text.split('\n').filter((line) => line.trim() !== '');
  const entries = lines.flatMap((line) => {
    const match = LINE.exec(line);
    return match ? [{ time: match[1], level: match[2], message: match[3] }] : [];
  });
  return { entries, unparsed: lines.length - entries.length };
}
