/** Finds what JSON cannot hold, before `JSON.stringify` throws at it or drops it. */

import { TGPError } from './errors.js';

/** The kernel takes no deeper nesting. */
const MAX_DEPTH = 100;
/** How much of a path is shown. */
const MAX_PATH_CHARACTERS = 200;

/** Where a walk is. The path is written only for an error. */
interface Walk {
  root: string;
  bigint: boolean;
  keys: (string | number)[];
  parents: object[];
}

/**
 * Throws `EVALIDATION` with the path of the first value that has no JSON form. Fields with `undefined` are left out.
 * `bigint` passes big integers, which the connection writes exactly.
 */
export function checkJson(value: unknown, path: string, { bigint = false } = {}): void {
  check(value, { root: path, bigint, keys: [], parents: [] });
}

/** What a value is, for a message. */
export function kindOf(value: unknown): string {
  if (value === null) {
    return 'null';
  }
  if (typeof value !== 'object') {
    return typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`;
  }
  if (Array.isArray(value)) {
    return 'an array';
  }
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof name === 'string' && name !== 'Object' && name !== '' ? `a ${name}` : 'an object';
}

function check(value: unknown, walk: Walk): void {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return;
    case 'number':
      if (!Number.isFinite(value)) {
        throw noJson(walk, String(value), 'pass a finite number, null or a string');
      }
      return;
    case 'object':
      if (value !== null) {
        checkObject(value, walk);
      }
      return;
    case 'bigint':
      if (walk.bigint) {
        return;
      }
      throw noJson(walk, 'a bigint', 'pass a number, or a string beyond 2^53');
    case 'function':
      throw noJson(walk, 'a function', 'pass data; `hostTools` offers functions to forged tools');
    default:
      throw noJson(walk, kindOf(value), 'leave it out, or pass null');
  }
}

function checkObject(value: object, walk: Walk): void {
  const { keys, parents } = walk;
  if (parents.includes(value)) {
    throw noJson(walk, 'a circular reference', 'pass data without references to the objects around it');
  }
  if (parents.length >= MAX_DEPTH) {
    const field = pathOf(walk);
    const message = `the value at \`${field}\` is nested more than ${MAX_DEPTH} levels deep`;
    throw new TGPError('EVALIDATION', message, { help: 'pass a flatter value', field });
  }
  if (value instanceof Map || value instanceof Set) {
    throw noJson(walk, kindOf(value), `pass \`${value instanceof Map ? 'Object.fromEntries(map)' : '[...set]'}\``);
  }
  parents.push(value);
  const json: unknown = 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value;
  if (json !== value) {
    check(json, walk);
  } else if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      keys.push(at);
      check(value[at], walk);
      keys.pop();
    }
  } else {
    for (const key of Object.keys(value)) {
      const inner = (value as Record<string, unknown>)[key];
      if (inner !== undefined) {
        keys.push(key);
        check(inner, walk);
        keys.pop();
      }
    }
  }
  parents.pop();
}

function noJson(walk: Walk, what: string, help: string): TGPError {
  const field = pathOf(walk);
  return new TGPError('EVALIDATION', `the value at \`${field}\` is ${what}, which has no JSON form`, { help, field });
}

/** As JavaScript writes it: `arguments.items[2]`. */
function pathOf({ root, keys }: Walk): string {
  const part = (key: string | number): string =>
    typeof key === 'string' && /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  const path = root + keys.map(part).join('');
  return path.length > MAX_PATH_CHARACTERS ? `${path.slice(0, MAX_PATH_CHARACTERS)}…` : path;
}
