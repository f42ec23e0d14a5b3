import { expect, test } from '@tgp/test';
import billableWeight from './billable_weight.ts';

test('a light box is billed by its volume', () => {
  const box = { length: 40, width: 30, height: 20, weight: 3, divisor: 5000 };
  expect(billableWeight(box)).toBe(4.8);
});
