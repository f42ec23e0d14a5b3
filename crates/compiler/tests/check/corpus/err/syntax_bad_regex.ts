/** A pattern that cannot be. */
export default (args: { text: string }) => /(unclosed/.test(args.text);
