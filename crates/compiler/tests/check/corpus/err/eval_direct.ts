/** Runs text. */
export default (args: { code: string }) => eval(args.code);
