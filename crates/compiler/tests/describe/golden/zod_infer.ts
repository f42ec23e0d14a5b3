import { z } from 'zod';

const Address = z.object({ city: z.string().min(1), zip: z.string().optional() });
const Args = z
  .object({
    name: z.string().describe('Full name.'),
    age: z.number().int().min(0).max(150).nullable(),
    role: z.enum(['admin', 'user']).default('user'),
    addresses: z.array(Address).max(3),
    scores: z.record(z.string(), z.number()),
    kind: z.union([z.literal('a'), z.literal('b'), z.boolean()]),
  })
  .extend({ note: z.string().nullish() });

/** Registers a person. */
export default function register(args: z.infer<typeof Args>): string {
  return args.name;
}
