/** Reads what it is given. */
export default (args: any) => `${args.title}: ${args['sub-title']} ${args.items.map(String)}`;
