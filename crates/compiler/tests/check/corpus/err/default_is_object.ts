/** An object is not a tool. */
export default { run: (args: { n: number }) => args.n };
