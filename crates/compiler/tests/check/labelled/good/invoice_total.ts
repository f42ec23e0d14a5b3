interface Line {
  description: string;
  quantity: number;
  unitPriceCents: number;
  taxRate: number;
}

/** Computes net, tax and gross of an invoice in cents. Each line is rounded on its own. */
export default function invoiceTotal(args: { lines: Line[]; discountPercent?: number }): { net: number; tax: number; gross: number } {
  const factor = 1 - (args.discountPercent ?? 0) / 100;
  const totals = args.lines.reduce(
    (sum, line) => {
      const net = Math.round(line.quantity * line.unitPriceCents * factor);
      const tax = Math.round(net * line.taxRate);
      return { net: sum.net + net, tax: sum.tax + tax };
    },
    { net: 0, tax: 0 },
  );
  return { ...totals, gross: totals.net + totals.tax };
}
