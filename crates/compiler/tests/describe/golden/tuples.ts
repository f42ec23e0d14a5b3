type Point = [x: number, y: number, z?: number];

/** Lengths of lines. */
export default (args: { line: [Point, Point]; path: readonly Point[]; row: [string, ...number[]]; none: [] }): number[] =>
  args.path.map(([x, y]) => Math.hypot(x, y));
