interface Entry {
  level: string;
  message: string;
}

const LINE = /^\[(?<level>[A-Z]+)\]\s+(?<message>.*)$/;

/** Parses log lines such as `[WARN] disk is full`. */
export default function parseLog({ text }: { text: string }): Entry[] {
  return text
    .split('\n')
    .map((line) => LINE.exec(line)?.groups)
    .filter((groups) => groups !== undefined)
    .map((groups) => ({ level: groups.level, message: groups.message }));
}
