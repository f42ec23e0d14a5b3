/** Cents of a decimal amount such as "12.30". */
export function toCents(amount: string): number {
  const match = /^(-?)(\d+)(?:\.(\d{1,2}))?$/.exec(amount);
  if (!match) throw new Error(`not an amount: ${amount}`);
  const cents = Number(match[2]) * 100 + Number((match[3] ?? '').padEnd(2, '0'));
  return match[1] ? -cents : cents;
}

/** A decimal amount of cents. */
export function fromCents(cents: number): string {
  return (cents / 100).toFixed(2);
}
