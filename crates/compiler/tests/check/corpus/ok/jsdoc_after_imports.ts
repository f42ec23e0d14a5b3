import { z } from 'zod';

/** Parses a list of names. */
const Names = z.array(z.string());

export default function names(args: { value: unknown }): string[] {
  return Names.parse(args.value);
}
