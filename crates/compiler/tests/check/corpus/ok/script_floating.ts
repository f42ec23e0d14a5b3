/** The last expression of a script is its result. */
const sql = 'SELECT * FROM t WHERE a = ?';
tgp.exec_sql(sql, [args.a]);
