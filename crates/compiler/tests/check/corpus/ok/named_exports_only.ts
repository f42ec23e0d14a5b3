/** Adds two numbers. */
export const add = (a: number, b: number): number => a + b;

/** Fails unless the value is positive. */
export function assertPositive(value: number): asserts value is number {
  if (value <= 0) throw new RangeError('must be positive');
}
