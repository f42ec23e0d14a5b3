type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Flattens nested JSON into dotted paths: { a: { b: 1 } } becomes { 'a.b': 1 }. */
export default function jsonFlatten(args: { value: Json; separator?: string }): Record<string, Json> {
  const separator = args.separator ?? '.';
  const walk = (value: Json, path: string): [string, Json][] => {
    if (Array.isArray(value)) return value.flatMap((item, index) => walk(item, path ? `${path}${separator}${index}` : `${index}`));
    if (value !== null && typeof value === 'object') {
      return Object.entries(value).flatMap(([key, inner]) => walk(inner, path ? `${path}${separator}${key}` : key));
    }
    return [[path, value]];
  };
  return Object.fromEntries(walk(args.value, ''));
}
