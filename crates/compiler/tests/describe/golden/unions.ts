enum Level {
  Low,
  High = 5,
  Higher,
}
enum Unit {
  Metric = 'metric',
  Imperial = 'imperial',
}
type Mode = 'fast' | 'safe';
type Shape = { kind: 'circle'; radius: number } | { kind: 'square'; side: number };

/** Shows every union. */
export default function unions(args: {
  level: Level;
  highest: Level.Higher;
  unit: Unit | null;
  mode: Mode | undefined;
  flag: true | false;
  either: string | number;
  nullable: string | null;
  object: { a: number } | null;
  list: (string | number)[] | null;
  shape: Shape;
  one: -1 | 0 | 1;
  open: Mode | string;
  anything: unknown | string;
  template: `id-${number}`;
}): string | undefined {
  return args.mode;
}
