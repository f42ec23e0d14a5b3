class ValidationError extends Error {
  constructor(readonly field: string, message: string) {
    super(`${field}: ${message}`);
    this.name = 'ValidationError';
  }
}
/** Validates an order. */
export default function validateOrder(args: { order: { sku?: string; quantity?: number } }): { sku: string; quantity: number } {
  const { sku, quantity } = args.order;
  if (!sku) throw new ValidationError('sku', 'is missing');
  if (!quantity || quantity < 1 || quantity > 999) throw new ValidationError('quantity', 'must be between 1 and 999');
  return { sku, quantity };
}
