/** Sends reminders for overdue invoices. */
export default async function remind(args: { url: string }) {
  const send = async (id: number) => {
    await tgp.fetch(args.url, { method: 'POST', body: String(id) });
  };
  const invoices = await tgp.exec_sql<{ id: number }>('SELECT id FROM invoices WHERE overdue = 1');
  invoices.forEach((invoice) => {
    send(invoice.id);
  });
  return invoices.length;
}
