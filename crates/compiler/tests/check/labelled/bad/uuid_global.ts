/** A new order. */
export default (args: { customer: string }) => ({ id: uuidv4(), customer: args.customer });
