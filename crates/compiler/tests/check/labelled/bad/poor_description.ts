/** f */
export default function f(args: { a: string; b: string }): boolean {
  return args.a.includes(args.b);
}
