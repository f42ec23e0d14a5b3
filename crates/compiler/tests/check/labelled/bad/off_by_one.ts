/** The number of pages. */
export default (args: { items: number; pageSize: number }): number => Math.floor(args.items / args.pageSize);
