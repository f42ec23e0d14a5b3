/** Searches articles. */
export default async function searchArticles(args: { term: string; limit?: number }) {
  const sql = `SELECT id, title FROM articles WHERE title LIKE '%${args.term}%' LIMIT ${args.limit ?? 10}`;
  return tgp.exec_sql(sql);
}
