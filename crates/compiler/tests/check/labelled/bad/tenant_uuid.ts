/** Rows of the tenant. */
export default async function tenantRows(args: { table: 'orders' | 'users' }) {
  const tenant = '3f2c9a1e-7b4d-4e2a-9c55-8d1f0b6e7a21';
  return tgp.exec_sql('SELECT * FROM ' + (args.table === 'orders' ? 'orders' : 'users') + ' WHERE tenant = ?', [tenant]);
}
