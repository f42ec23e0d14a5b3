// Values as a person reads them in a log, in the notation of Node's `util.inspect`.
const { apply, getPrototypeOf, hasOwn, keys, now, stringify, table, textOf } = kit;
const MAX_DEPTH = 2;
const MAX_ITEMS = 100;
/** Node shows all keys of an object; a log here has a size. */
const MAX_KEYS = 500;
const MAX_STRING = 10_000;
const CUSTOM = Symbol.for('nodejs.util.inspect.custom');
const { getOwnPropertyDescriptor, getOwnPropertySymbols } = Object;
const isEnumerable = Object.prototype.propertyIsEnumerable;

const ESCAPES = { __proto__: null, '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r', '\\': '\\\\' };
const escaped = (character) => ESCAPES[character] ?? `\\x${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

function quoted(text) {
  let quote = "'";
  if (text.includes("'")) {
    if (!text.includes('"')) quote = '"';
    else if (!text.includes('`') && !text.includes('${')) quote = '`';
  }
  const body = text.replace(/[\x00-\x1f\x7f-\x9f\\]/g, escaped).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, (half) => `\\u${half.charCodeAt(0).toString(16).toUpperCase()}`);
  return `${quote}${quote === "'" ? body.replaceAll("'", "\\'") : body}${quote}`;
}

function showString(ctx, text) {
  const rest = text.length - MAX_STRING;
  const tail = rest > 0 ? `... ${rest} more character${rest > 1 ? 's' : ''}` : '';
  const clipped = rest > 0 ? text.slice(0, MAX_STRING) : text;
  // Long text is broken at its line ends.
  if (clipped.length > 16 && clipped.length > ctx.width - ctx.indent - 4 && clipped.includes('\n')) {
    return clipped.split(/(?<=\n)/).map(quoted).join(` +\n${' '.repeat(ctx.indent + 2)}`) + tail;
  }
  return quoted(clipped) + tail;
}

function showPrimitive(ctx, value) {
  if (typeof value === 'string') return showString(ctx, value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : `${value}`;
  return String(value);
}

/** The name of the class of an object; null for one without a prototype. */
function classOf(value) {
  let at = value;
  while (at !== null) {
    const descriptor = getOwnPropertyDescriptor(at, 'constructor');
    if (descriptor !== undefined && typeof descriptor.value === 'function' && descriptor.value.name !== '' && value instanceof descriptor.value) {
      return String(descriptor.value.name);
    }
    at = getPrototypeOf(at);
  }
  return null;
}

function prefixOf(name, tag, fallback, size = '') {
  const suffix = tag !== '' && name !== tag ? `[${tag}] ` : '';
  if (name === null) return `[${fallback}${size}: null prototype] ${suffix}`;
  return `${name}${size} ${suffix}`;
}

function tagOf(value, name) {
  const tag = value[Symbol.toStringTag];
  return typeof tag === 'string' && tag !== '' && tag !== name ? tag : '';
}

function ownKeys(value) {
  const symbols = getOwnPropertySymbols(value).filter((key) => apply(isEnumerable, value, [key]));
  return [...keys(value), ...symbols];
}

const KINDS = { __proto__: null, AsyncFunction: 'AsyncFunction', GeneratorFunction: 'GeneratorFunction', AsyncGeneratorFunction: 'AsyncGeneratorFunction' };
function showFunction(value, name) {
  const kind = KINDS[value[Symbol.toStringTag]] ?? 'Function';
  const own = getOwnPropertyDescriptor(value, 'prototype');
  if (kind === 'Function' && own !== undefined && own.writable === false) {
    const parent = getPrototypeOf(value);
    const base = typeof parent === 'function' && parent.name ? ` extends ${parent.name}` : '';
    return `[class ${value.name || '(anonymous)'}${base}]`;
  }
  const title = typeof value.name === 'string' && value.name !== '' ? `: ${value.name}` : ' (anonymous)';
  return `[${kind}${title}]${name === null ? ' (null prototype)' : ''}`;
}

function showError(ctx, value) {
  const name = textOf(value.name ?? 'Error');
  const message = textOf(value.message ?? '');
  const title = message === '' ? name : `${name}: ${message}`;
  const stack = typeof value.stack === 'string' ? value.stack.trimEnd() : '';
  const indent = `\n${' '.repeat(ctx.indent)}`;
  // A stack that begins with the title is one that a tool has put there.
  const text = stack === '' ? `[${title}]` : stack.startsWith(name) ? stack : `${title}\n${stack}`;
  return text.replaceAll('\n', indent);
}

/** What the objects of the platform show in place of their private fields; undefined for all others. */
function platformFields(value) {
  const { URL, URLSearchParams } = kit.loaded('url') ?? {};
  const pick = (...names) => Object.fromEntries(names.map((name) => [name, value[name]]));
  if (URL !== undefined && value instanceof URL) {
    return pick('href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'searchParams', 'hash');
  }
  if (URLSearchParams !== undefined && value instanceof URLSearchParams) return new Map(value);
  const { Headers, Request, Response } = kit.loaded('fetch') ?? {};
  if (Headers === undefined) return blobFields(value, pick);
  if (value instanceof Headers) return Object.fromEntries(value);
  if (value instanceof Response) return pick('status', 'statusText', 'headers', 'body', 'bodyUsed', 'ok', 'redirected', 'type', 'url');
  if (value instanceof Request) return pick('method', 'url', 'headers', 'redirect', 'bodyUsed');
  return blobFields(value, pick);
}

function blobFields(value, pick) {
  const { Blob, File } = kit.loaded('blob') ?? {};
  if (File !== undefined && value instanceof File) return pick('size', 'type', 'name', 'lastModified');
  if (Blob !== undefined && value instanceof Blob) return pick('size', 'type');
  const { AbortSignal } = kit.loaded('events') ?? {};
  if (AbortSignal !== undefined && value instanceof AbortSignal) return pick('aborted');
  return undefined;
}

function isIterator(value, tag) {
  return tag.endsWith(' Iterator') && typeof value.next === 'function';
}

/** Braces, a text before them, and the function that lists what is inside; or a text that is all there is. */
function shapeOf(ctx, value) {
  const name = classOf(value);
  const tag = tagOf(value, name);
  const own = Array.isArray(value) || ArrayBuffer.isView(value) ? ownKeys(value).filter((key) => typeof key === 'symbol' || !/^\d+$/.test(key)) : ownKeys(value);
  const shape = { own, base: '', open: '{', close: '}', isList: false, list: () => [] };
  const braces = (prefix, open, close) => Object.assign(shape, { open: `${prefix}${open}`, close, isList: open === '[' });
  if (Array.isArray(value)) {
    const prefix = name !== 'Array' || tag !== '' ? prefixOf(name, tag, 'Array', `(${value.length})`) : '';
    shape.list = () => listArray(ctx, value);
    return braces(prefix, '[', ']');
  }
  if (value instanceof Set) {
    shape.list = () => listSet(ctx, value);
    return braces(prefixOf(name, tag, 'Set', `(${value.size})`), '{', '}');
  }
  if (value instanceof Map) {
    shape.list = () => listMap(ctx, value);
    return braces(prefixOf(name, tag, 'Map', `(${value.size})`), '{', '}');
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    const { Buffer } = kit.loaded('buffer') ?? {};
    if (Buffer !== undefined && Buffer.isBuffer(value)) return value.inspect();
    shape.list = () => listNumbers(ctx, value);
    return braces(prefixOf(name, tag, name ?? 'TypedArray', `(${value.length})`), '[', ']');
  }
  if (isIterator(value, tag)) return braces(`[${tag}] `, '{', '}');
  return objectShape(ctx, value, name, tag, shape);
}

function objectShape(ctx, value, name, tag, shape) {
  const { own } = shape;
  const withBase = (base) => (own.length === 0 ? base : Object.assign(shape, { base }));
  if (typeof value === 'function') return withBase(showFunction(value, name));
  if (value instanceof RegExp) return withBase(textOf(RegExp.prototype.toString.call(value)));
  if (value instanceof Date) return withBase(Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString());
  if (value instanceof Error) {
    shape.own = own.filter((key) => key !== 'stack' && key !== 'message');
    for (const hidden of ['cause', 'errors']) {
      if (hasOwn(value, hidden) && !shape.own.includes(hidden)) shape.own.push(hidden);
    }
    const base = showError(ctx, value);
    return shape.own.length === 0 ? base : Object.assign(shape, { base, hidden: ['cause', 'errors'] });
  }
  if (value instanceof ArrayBuffer) {
    shape.list = () => [`[Uint8Contents]: ${hexOf(value)}`, `byteLength: ${value.byteLength}`];
  } else if (value instanceof DataView) {
    shape.list = () => [`byteLength: ${value.byteLength}`, `byteOffset: ${value.byteOffset}`, `buffer: ${show(ctx, value.buffer)}`];
  } else if (value instanceof Promise) {
    shape.list = () => ['<pending>'];
    if (kit.promiseState !== undefined) shape.list = () => kit.promiseState(value);
  } else if (value instanceof WeakSet || value instanceof WeakMap) {
    shape.list = () => ['<items unknown>'];
  } else if (value instanceof WeakRef) {
    shape.list = () => [`<ref>`];
  } else if (value instanceof Number || value instanceof Boolean || value instanceof BigInt || value instanceof Symbol) {
    return withBase(`[${name}: ${showPrimitive(ctx, value.valueOf())}]`);
  } else if (value instanceof String) {
    shape.own = own.filter((key) => typeof key === 'symbol' || !/^\d+$/.test(key));
    const base = `[String: ${quoted(value.valueOf())}]`;
    return shape.own.length === 0 ? base : Object.assign(shape, { base });
  } else {
    const fields = platformFields(value);
    if (fields !== undefined) {
      shape.own = [];
      shape.list = () => (fields instanceof Map ? listMap(ctx, fields) : keys(fields).map((key) => showProperty(ctx, fields, key, [])));
    } else if (name === 'Object' && tag === '') {
      return own.length === 0 ? '{}' : shape;
    }
    if (own.length === 0 && fields === undefined) return `${prefixOf(name, tag, 'Object')}{}`;
  }
  shape.open = `${prefixOf(name, tag, 'Object')}{`;
  return shape;
}

function hexOf(buffer) {
  const bytes = new Uint8Array(buffer, 0, Math.min(50, buffer.byteLength));
  const rest = buffer.byteLength - bytes.length;
  const text = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
  return `<${text}${rest > 0 ? ` ... ${rest} more byte${rest > 1 ? 's' : ''}` : ''}>`;
}
