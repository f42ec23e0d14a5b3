import multiply from './multiplier';
import { sum } from '/lib/math/sum.ts';

/** Area plus margin, by other tools. */
export default async function calculator(args: { a: number; b: number; margin: number }) {
  const area = await multiply({ a: args.a, b: args.b });
  return sum([area, args.margin]);
}
