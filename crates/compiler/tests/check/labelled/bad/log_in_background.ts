/** Computes a quote and logs it. */
export default async function quote(args: { amount: number; rate: number }) {
  const total = args.amount * args.rate;
  const logged = tgp.exec_sql('INSERT INTO quotes (total) VALUES (?)', [total]);
  return { total };
}
