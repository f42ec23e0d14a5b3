import { z } from 'zod';

const Order = z.object({
  id: z.string().min(1),
  items: z.array(z.object({ sku: z.string().regex(/^[A-Z]{3}-\d{4}$/), quantity: z.number().int().positive().max(999) })).nonempty(),
  note: z.string().max(500).optional(),
});

/** Parses an order and returns it, or the list of problems. */
export default function zodOrder(args: { order: unknown }): { ok: true; order: z.infer<typeof Order> } | { ok: false; problems: string[] } {
  const parsed = Order.safeParse(args.order);
  if (parsed.success) return { ok: true, order: parsed.data };
  return { ok: false, problems: parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) };
}
