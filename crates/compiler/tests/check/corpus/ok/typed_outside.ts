type Combine = (a: number, b: number) => number;

/** Adds. */
export const add: Combine = (a, b) => a + b;

/** Multiplies. */
export const multiply = ((a, b) => a * b) satisfies Combine;

/** Both a named export and the tool. */
export function combine(args: { a: number; b: number }): number {
  return add(args.a, multiply(args.a, args.b));
}

export default combine;
