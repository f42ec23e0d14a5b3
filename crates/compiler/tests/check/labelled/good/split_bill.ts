/** Splits an amount in cents so that the parts add up exactly; the first people pay the spare cents. */
export default ({ amountCents, people }: { amountCents: number; people: string[] }): Record<string, number> => {
  if (people.length === 0) throw new RangeError('at least one person is needed');
  const base = Math.floor(amountCents / people.length);
  const spare = amountCents - base * people.length;
  return Object.fromEntries(people.map((person, index) => [person, base + (index < spare ? 1 : 0)]));
};
