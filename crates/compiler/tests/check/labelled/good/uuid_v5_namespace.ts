const DNS_NAMESPACE = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';

/** The bytes of a namespace UUID for version 5 names (RFC 4122); the DNS namespace unless another is given. */
export default function uuidBytes(args: { namespace?: string }): number[] {
  const hex = (args.namespace ?? DNS_NAMESPACE).replaceAll('-', '');
  return hex.match(/../g)!.map((pair) => parseInt(pair, 16));
}
