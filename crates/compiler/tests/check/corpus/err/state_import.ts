import config from './config';

/** Changes what another tool exports. */
export default function tool(args: { limit: number }): number {
  config.limit = args.limit;
  return args.limit;
}
