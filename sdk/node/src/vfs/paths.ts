/** Paths of a virtual file system. */

import { TGPError } from '../errors.js';

/** A path without `.`, empty parts and a leading `/`. Throws when it leaves the root. */
export function normalizePath(path: string): string {
  if (path.includes('\0') || path.includes('\\')) {
    throw new TGPError('ESECURITY', `invalid path \`${path}\``);
  }
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) {
    throw new TGPError('ESECURITY', `the path \`${path}\` leaves the root`);
  }
  return parts.join('/');
}

export function notFound(path: string): TGPError {
  return new TGPError('ENOTFOUND', `the file \`${path}\` does not exist`);
}

/** The directories above a path, without the root. */
export function parents(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
}
