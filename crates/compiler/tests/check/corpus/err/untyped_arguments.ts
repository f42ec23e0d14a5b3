/** Reads parameters without naming them. */
export default function add(): number {
  return arguments[0].a;
}
