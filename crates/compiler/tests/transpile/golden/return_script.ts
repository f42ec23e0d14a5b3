import { sum } from '@tgp/std';
declare const args: { values: number[] };
const total: number = sum(args.values);
if (total > 10) {
  return { total, big: true };
}
return { total };
