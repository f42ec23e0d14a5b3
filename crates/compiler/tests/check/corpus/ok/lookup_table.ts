const FACTORS = { kg: 2.2046, g: 0.0022 } as const;

enum Priority {
  Low = 10,
  High = 50,
}

/** Converts to pounds; a table of numbers in the source is worth a second look. */
export default function pounds(args: { amount: number; unit: keyof typeof FACTORS; priority: Priority }): number {
  return args.priority === Priority.High ? args.amount * FACTORS[args.unit] : args.amount;
}
