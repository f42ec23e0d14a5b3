const tax = 0.05;

/** The example of the standards. */
export default (args: { net: number }) => args.net * (1 + tax);
