// structuredClone for everything that exists here.
const { defineProperty, keys, textOf, part, apply, errorClasses } = kit;

// A subclass of an error class clones as the nearest built-in class by its name, as the standard has it.
const ERROR_CLASSES = errorClasses;
const typedArrayTag = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
const VIEWS = { __proto__: null };
for (const name of [
  'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'Float16Array',
  'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array',
]) {
  VIEWS[name] = kit.views[name];
}

function refuse(what) {
  throw new DOMException(`${what} could not be cloned.`, 'DataCloneError');
}

function cloneError(value, seen, keep) {
  const name = textOf(value.name);
  const copy = keep(new (ERROR_CLASSES[name] ?? Error)());
  const put = (key, item) => defineProperty(copy, key, { __proto__: null, value: item, writable: true, configurable: true, enumerable: false });
  if (Object.hasOwn(value, 'message')) put('message', textOf(value.message));
  if (typeof value.stack === 'string') put('stack', value.stack);
  if (Object.hasOwn(value, 'cause')) put('cause', cloneInto(value.cause, seen));
  return copy;
}

/** Copies of objects that only exist here; undefined for everything else. */
function clonePlatformObject(value) {
  const { Blob, File } = kit.loaded('blob') ?? {};
  if (File !== undefined && value instanceof File) return new File([value], value.name, { type: value.type, lastModified: value.lastModified });
  if (Blob !== undefined && value instanceof Blob) return new Blob([value], { type: value.type });
  if (value instanceof DOMException) return new DOMException(value.message, value.name);
  return undefined;
}

function cloneInto(value, seen) {
  if (typeof value === 'function') refuse(textOf(value));
  if (typeof value === 'symbol') refuse(textOf(value));
  if (typeof value !== 'object' || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  const keep = (copy) => {
    seen.set(value, copy);
    return copy;
  };
  if (value instanceof Date) return keep(new Date(value.getTime()));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof ArrayBuffer) {
    return keep(value.resizable ? resizableCopy(value) : value.slice(0));
  }
  if (ArrayBuffer.isView(value)) {
    const buffer = cloneInto(value.buffer, seen);
    const tag = apply(typedArrayTag, value, []);
    if (tag === undefined) return keep(new DataView(buffer, value.byteOffset, value.byteLength));
    return keep(new VIEWS[tag](buffer, value.byteOffset, value.length));
  }
  if (value instanceof kit.Boolean || value instanceof kit.Number || value instanceof kit.String || value instanceof kit.BigInt) {
    return keep(Object(value.valueOf()));
  }
  if (value instanceof Map) {
    const copy = keep(new Map());
    for (const [key, item] of [...value]) copy.set(cloneInto(key, seen), cloneInto(item, seen));
    return copy;
  }
  if (value instanceof Set) {
    const copy = keep(new Set());
    for (const item of [...value]) copy.add(cloneInto(item, seen));
    return copy;
  }
  const platform = clonePlatformObject(value);
  if (platform !== undefined) return keep(platform);
  if (value instanceof Error) return cloneError(value, seen, keep);
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
    refuse(`#<${textOf(value.constructor?.name ?? 'Object')}>`);
  }
  const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
  for (const key of keys(value)) {
    defineProperty(copy, key, {
      __proto__: null, value: cloneInto(value[key], seen), writable: true, configurable: true, enumerable: true,
    });
  }
  return copy;
}

function resizableCopy(buffer) {
  const copy = new ArrayBuffer(buffer.byteLength, { maxByteLength: buffer.maxByteLength });
  new Uint8Array(copy).set(new Uint8Array(buffer));
  return copy;
}

function structuredClone(value, options = undefined) {
  if (arguments.length === 0) throw new TypeError('The "value" argument must be specified');
  const seen = new Map();
  const transferred = [...(options?.transfer ?? [])];
  for (const item of transferred) {
    if (!(item instanceof ArrayBuffer)) refuse('Value in the transfer list');
    if (item.detached) refuse('An ArrayBuffer is detached and');
    if (transferred.indexOf(item) !== transferred.lastIndexOf(item)) refuse('An ArrayBuffer that is listed twice');
  }
  // The moved buffers take the place of the originals while the rest is copied.
  const moved = transferred.map((item) => [item, item.slice(0)]);
  for (const [item, copy] of moved) seen.set(item, copy);
  const clone = cloneInto(value, seen);
  for (const item of transferred) item.transfer();
  return clone;
}
return { __proto__: null, structuredClone };
