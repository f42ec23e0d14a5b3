/** The same value. */
export default function same(args) {
  return args;
}
