/** Orders of a day. */
export default async function ordersOfDay(args: { day: string }) {
  const rows = await tgp.query(`SELECT * FROM orders WHERE day = '${args.day}'`);
  return rows;
}
