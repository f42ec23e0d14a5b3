import secrets from '../../../../secrets.json';

/** Lists the names of secrets. */
export default function secretNames(args: { prefix: string }): string[] {
  return Object.keys(secrets).filter((name) => name.startsWith(args.prefix));
}
