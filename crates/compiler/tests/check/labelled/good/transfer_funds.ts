/** Moves money between two accounts; fails when the first has too little. */
export default async function transferFunds(args: { from: string; to: string; cents: number }): Promise<{ from: number; to: number }> {
  if (!Number.isInteger(args.cents) || args.cents <= 0) throw new RangeError('cents must be a positive integer');
  const balance = async (id: string): Promise<number> => {
    const [row] = await tgp.exec_sql<{ balance: number }>('SELECT balance FROM accounts WHERE id = ?', [id]);
    if (!row) throw new Error(`no such account: ${id}`);
    return row.balance;
  };
  if ((await balance(args.from)) < args.cents) throw new Error('insufficient funds');
  await tgp.exec_sql('UPDATE accounts SET balance = balance - ? WHERE id = ?', [args.cents, args.from]);
  await tgp.exec_sql('UPDATE accounts SET balance = balance + ? WHERE id = ?', [args.cents, args.to]);
  return { from: await balance(args.from), to: await balance(args.to) };
}
