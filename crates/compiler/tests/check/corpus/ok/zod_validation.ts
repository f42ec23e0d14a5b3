import { z } from 'zod';

const Input = z.object({
  name: z.string().min(3).max(64),
  age: z.number().int().min(0).max(150),
  limit: z.number().default(25),
});

/** Validates a person and greets them. */
export default function greet(args: z.infer<typeof Input>): { greeting: string } {
  const { name, age } = Input.parse(args);
  return { greeting: `${name} (${age})` };
}
