import { expect, test } from '@tgp/test';
import luhn from './luhn';

test('accepts a valid number', () => {
  expect(luhn({ number: '4539 1488 0343 6467' })).toBe(true);
});

test('refuses a changed digit', () => {
  expect(luhn({ number: '4539 1488 0343 6468' })).toBe(false);
});
