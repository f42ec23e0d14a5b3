interface Payment {
  month: number;
  interest: number;
  principal: number;
  balance: number;
}

/** The payment plan of an annuity loan. */
export default function amortization(args: { principal: number; annualRate: number; months: number }): { payment: number; plan: Payment[] } {
  const rate = args.annualRate / 12;
  const payment = rate === 0 ? args.principal / args.months : (args.principal * rate) / (1 - (1 + rate) ** -args.months);
  const plan: Payment[] = [];
  let balance = args.principal;
  for (let month = 1; month <= args.months; month++) {
    const interest = balance * rate;
    const principal = payment - interest;
    balance = Math.max(0, balance - principal);
    plan.push({ month, interest, principal, balance });
  }
  return { payment, plan };
}
