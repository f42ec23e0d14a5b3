/** What the checks of values of the application share. */

import { TGPError, type TGPErrorCode } from './errors.js';
import { suggestion } from './suggest.js';

/** The compiler checks that these are all of them. */
export type Names<T> = Record<keyof T, true>;

/** Throws for a name that is not known: a misspelled option would be ignored. */
export function checkNames(
  code: TGPErrorCode,
  given: object,
  known: readonly string[],
  kind: string,
  place: string,
): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) {
      throw new TGPError(code, `unknown ${kind} \`${name}\` of ${place}`, { help: suggestion(name, known), field: name });
    }
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function wrong(message: string, help: string): TGPError {
  return new TGPError('ECONFIG', message, { help });
}
