let counter = 0;

/** Counts its calls. */
export default function count(): number {
  counter += 1;
  return counter;
}
