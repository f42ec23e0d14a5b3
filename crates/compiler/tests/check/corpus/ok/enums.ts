enum Level {
  Low,
  High,
}

const enum Unit {
  Metric = 'metric',
  Imperial = 'imperial',
}

/** Names a level. */
export default function name(args: { level: Level; unit: Unit }): string {
  switch (args.level) {
    case Level.Low:
      return `low ${args.unit}`;
    case Level.High:
      return `high ${args.unit}`;
  }
}
