const MAX_RETRIES = 3;
const OFFSET = -273.15;
const MASK = 12345n;

/** A name in capitals is still hard-coded data. */
export default (args: { tries: number }) => [args.tries < MAX_RETRIES, OFFSET, MASK];
