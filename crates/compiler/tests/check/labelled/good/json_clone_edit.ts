/** Redacts keys of a JSON value. */
export default function redact(args: { value: Record<string, unknown>; keys: string[] }): Record<string, unknown> {
  const result: Record<string, unknown> = JSON.parse(JSON.stringify(args.value));
  for (const key of args.keys) {
    if (key in result) result[key] = '***';
  }
  return result;
}
