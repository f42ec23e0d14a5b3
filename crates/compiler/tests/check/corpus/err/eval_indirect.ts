/** Runs text from behind. */
export default (args: { code: string }) => [(0, eval)(args.code), eval?.(args.code), [args.code].map(eval)];
