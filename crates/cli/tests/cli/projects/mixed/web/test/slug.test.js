import assert from 'node:assert/strict';
import { test } from 'node:test';
import { price, slug } from '../src/slug.js';

test('joins all words', () => assert.equal(slug('Blue ink pen'), 'blue-ink-pen'));
test('counts cents', () => assert.equal(price(1.5), '150 ct'));
