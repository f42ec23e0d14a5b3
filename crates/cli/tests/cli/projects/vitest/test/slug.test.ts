import { expect, test } from 'vitest';
import { price, slug } from '../src/slug.ts';

test('joins all words', () => expect(slug('Blue ink pen')).toBe('blue-ink-pen'));
test('counts cents', () => expect(price(1.5)).toBe('150 ct'));
