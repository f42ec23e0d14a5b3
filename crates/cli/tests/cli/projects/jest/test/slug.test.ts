import { price, slug } from '../src/slug';

test('joins all words', () => expect(slug('Blue ink pen')).toBe('blue-ink-pen'));
test('counts cents', () => expect(price(1.5)).toBe('150 ct'));
