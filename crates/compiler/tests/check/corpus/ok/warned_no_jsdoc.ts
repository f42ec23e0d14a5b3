import { z } from 'zod';

export default function parse(args: { value: unknown }): string {
  return z.string().parse(args.value);
}
