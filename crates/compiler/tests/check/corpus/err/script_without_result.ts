/** Computes, and keeps it. */
const total = args.values.length;
