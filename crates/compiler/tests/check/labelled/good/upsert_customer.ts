interface Customer { id: string; name: string; email: string }
/** Inserts or updates a customer and returns the stored row. */
export default async function upsertCustomer(args: { customer: Customer }): Promise<Customer> {
  const { id, name, email } = args.customer;
  const sql = `INSERT INTO customers (id, name, email) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email`;
  await tgp.exec_sql(sql, [id, name, email]);
  const [row] = await tgp.exec_sql<Customer>('SELECT * FROM customers WHERE id = $1', [id]);
  return row;
}
