/** A page of rows. */
export default async function paged({ page = 1, size = 50 }: { page?: number; size?: number }) {
  const offset = (page - 1) * size;
  return tgp.exec_sql('SELECT * FROM events ORDER BY id LIMIT ' + Math.min(size, 500) + ' OFFSET ' + Math.max(0, offset));
}
