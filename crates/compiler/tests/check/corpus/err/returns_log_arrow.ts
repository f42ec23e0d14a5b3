/** The result of logging is nothing. */
export default (args: { name: string }) => console.log(args.name);
