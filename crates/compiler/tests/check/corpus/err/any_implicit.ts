/** Adds. */
export function add(a, b = 1, ...rest) {
  return [a, b, rest];
}
