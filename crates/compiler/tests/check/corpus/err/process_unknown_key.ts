/** Whatever the caller says. */
export default (args: { name: string }) => globalThis[args.name];
