/** Ends the kernel. */
export default function leave(args: { code: number }): number {
  process.exit(args.code);
  return args.code;
}
