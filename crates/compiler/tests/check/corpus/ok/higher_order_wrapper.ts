import { withRetry } from '@tgp/std';

/** Loads with retries. */
export default withRetry(async (args: { path: string }) => tgp.read_file(args.path));
