/** An object is no tool. */
export default { run: (args: { n: number }) => args.n };
