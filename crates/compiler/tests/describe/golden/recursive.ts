interface Tree {
  value: number;
  children: Tree[];
}
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Adds up a tree. */
export default function total(args: Tree): { sum: number; raw: Json } {
  return { sum: args.value + args.children.reduce((sum, child) => sum + total(child).sum, 0), raw: null };
}
