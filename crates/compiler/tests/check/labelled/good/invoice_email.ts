interface Invoice {
  number: string;
  customer: { name: string; email: string };
  total: number;
  due: string;
}

/** The subject and body of the e-mail for an invoice. */
export default function invoiceEmail(args: { invoice: Invoice; sender: string }): { to: string; from: string; subject: string; body: string } {
  const { invoice, sender } = args;
  return {
    to: invoice.customer.email,
    from: sender,
    subject: `Invoice ${invoice.number}`,
    body: `Dear ${invoice.customer.name},\n\nplease pay ${invoice.total.toFixed(2)} EUR by ${invoice.due}.\n\nKind regards`,
  };
}
