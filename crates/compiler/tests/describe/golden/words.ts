import { imported as renamed } from './other';
type Ignored<Parameter> = { ignored: Parameter };
class Invoice {}
/** Names to find a tool by. */
export default function invoiceTotal({ netAmount, tax: { rate } }: { netAmount: number; tax: { rate: number; region?: string } }): Ignored<number> {
  const i = 1;
  const aNameThatIsSoLongThatNobodyWouldEverSearchForIt = renamed(i);
  const [head, ...tail] = [netAmount, rate];
  for (const item of tail) head + item;
  try {
    const netAmount = new Invoice();
  } catch (problem) {}
  return { ignored: aNameThatIsSoLongThatNobodyWouldEverSearchForIt };
}
