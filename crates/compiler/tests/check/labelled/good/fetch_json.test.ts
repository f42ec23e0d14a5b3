import { expect, test } from '@tgp/test';
import fetchJson from './fetch_json';

test('rejects an address that is not allowed', async () => {
  await expect(fetchJson({ url: 'https://nowhere.invalid/data.json' })).rejects.toThrow();
});
