/** Joins names. */
export default function joinNames(args) {
  return args.names.join(', ');
}
