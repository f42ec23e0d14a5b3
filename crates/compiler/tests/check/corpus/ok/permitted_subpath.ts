import { z } from 'zod/v4';
import { chunk } from 'date-fns/chunk';
const lazy = await import('./lazy');

/** Packages are allowed with what is below them. */
export default function parse(args: { list: unknown[] }) {
  return chunk(z.array(z.string()).parse(args.list), lazy.size);
}
