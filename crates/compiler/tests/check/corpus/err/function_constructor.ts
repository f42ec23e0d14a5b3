/** Makes code. */
export default (args: { body: string }) => [new Function(args.body), Function('return 1')];
