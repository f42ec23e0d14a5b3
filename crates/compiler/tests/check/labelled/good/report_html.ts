import { groupBy, sum } from '@tgp/std';
/** An HTML report of sales per team. */
export default function report(args: { sales: { team: string; amount: number }[] }): string {
  const rows = Object.entries(groupBy(args.sales, (sale) => sale.team))
    .map(([team, sales]) => ({ team, total: sum(sales.map((sale) => sale.amount)) }))
    .sort((a, b) => b.total - a.total)
    .map(({ team, total }) => `<tr><td>${team}</td><td>${total.toFixed(2)}</td></tr>`);
  return `<table xmlns="http://www.w3.org/1999/xhtml">${rows.join('')}</table>`;
}
