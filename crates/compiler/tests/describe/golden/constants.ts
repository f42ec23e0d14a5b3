const UNITS = ['mm', 'cm', 'm'] as const;
const FACTORS = { mm: 1, cm: 10, m: 1000 };
type Unit = (typeof UNITS)[number];

/** Converts a length. */
export default ({ value, from, to = 'm' }: { value: number; from: Unit; to?: keyof typeof FACTORS }): number =>
  (value * FACTORS[from]) / FACTORS[to];
