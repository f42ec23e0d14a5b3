import type { Invoice } from './types';
import zod, { type ZodType } from 'zod';
import * as text from '@tgp/std';
import fs = require('./files');
export * from './more';
export { helper, type Helper } from './helper';

/** Sends an invoice. */
export default async function send(args: Invoice, options: { dry: boolean } = { dry: true }): Promise<void> {
  const late = await import('./late');
  const same = require('./files');
  late.run(args, options, text, zod, fs, same);
}
