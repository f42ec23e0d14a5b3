/** The names in upper case. */
export default function upperNames(args: { names: string[] }): string[] {
  const result: string[] = [];
  for (let i = 0; i < args.names.length; i++) {
    result.push(args.names[i].toUpperCase());
  }
  return result;
}
