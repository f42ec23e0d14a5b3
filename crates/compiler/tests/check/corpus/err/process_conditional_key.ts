/** One of two names. */
export default (args: { flag: boolean }) => globalThis[args.flag ? 'Math' : 'process'];
