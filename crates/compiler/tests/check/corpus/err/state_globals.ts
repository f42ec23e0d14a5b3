/** Writes where everybody reads. */
export default function tool(args: { x: number }): number {
  leaked = args.x;
  globalThis.kept = args.x;
  Array.prototype.last = () => args.x;
  Object.defineProperty(String.prototype, 'x', { value: 1 });
  return args.x;
}
