/** Lost. */
export default function (args: { n: number ) {
  return 1;
}
