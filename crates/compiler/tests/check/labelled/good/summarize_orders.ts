/** Counts and sums the orders in args.orders. */
const orders: { status: string; total: number }[] = args.orders;
const open = orders.filter((order) => order.status === 'open');
return { open: open.length, value: open.reduce((sum, order) => sum + order.total, 0) };
