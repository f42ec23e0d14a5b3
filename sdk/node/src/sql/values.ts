/** Values between the kernel's JSON and a database driver. Nothing is rounded. */

import { TGPError } from '../errors.js';
import type { SqlParameter } from './executor.js';

/** Reads a parameter of the wire: bytes, moments and large integers are tagged objects. */
export function parameterFromJson(value: unknown): SqlParameter {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return value as SqlParameter;
  }
  const keys = Object.keys(value);
  const [key] = keys;
  const content: unknown = keys.length === 1 && key !== undefined ? (value as Record<string, unknown>)[key] : undefined;
  if (typeof content !== 'string') {
    return value;
  }
  switch (key) {
    case '$base64':
      return Buffer.from(content, 'base64');
    case '$bigint':
      return BigInt(content);
    case '$date':
      return new Date(content);
    default:
      return value;
  }
}

/** A value of a driver as exact JSON: large integers are strings, bytes are base64, times are ISO 8601. */
export function toJsonValue(value: unknown): unknown {
  switch (typeof value) {
    case 'bigint':
      return integer(value);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'undefined':
      return null;
    case 'function':
    case 'symbol':
      throw new TGPError('ESQL', `the database driver returned a ${typeof value}, which has no JSON form`);
    case 'object':
      return value === null ? null : objectValue(value);
    default:
      return value;
  }
}

function objectValue(value: object): unknown {
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  }
  if (value instanceof ArrayBuffer) {
    return Buffer.from(value).toString('base64');
  }
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? null : value.toISOString();
  }
  if (Array.isArray(value)) {
    return value.map(toJsonValue);
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return value.toJSON();
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toJsonValue(inner)]));
}

/** An integer within ±2^53 is a number, any other a string. */
export function integer(value: bigint | string): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** `2026-11-17 02:00:00.5+00` as `2026-11-17T02:00:00.5Z`. */
export function isoTimestamp(text: string): string {
  return text.replace(' ', 'T').replace(/[+-]00(:00)?$/, 'Z');
}

/** An error of a driver, with the database's own code. */
export function sqlError(error: unknown, retryCodes: readonly string[] = []): TGPError {
  if (error instanceof TGPError) {
    return error;
  }
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  const details: Record<string, unknown> = {};
  if (typeof code === 'string' || typeof code === 'number') {
    details['sqlCode'] = String(code);
    if (retryCodes.includes(String(code))) {
      details['retry'] = true;
    }
  }
  return new TGPError('ESQL', typeof message === 'string' ? message : String(error), details, { cause: error });
}
