/** Adds. */
export default function add(args, { limit }, ...more) {
  return [args.a, limit, more];
}
