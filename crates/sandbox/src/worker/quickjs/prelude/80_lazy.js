// What costs something to make is made when a tool first names it: each part below `lazy/` is bytecode of its own.
const kit = {
  __proto__: null,
  AggregateError, Array, ArrayBuffer, BigInt, Boolean, DataView, Date, DOMException, Error, JSON, Map, Math, Number, Object, Promise,
  RangeError, Reflect, RegExp, Set, String, Symbol, TypeError, Uint8Array, WeakMap, WeakRef: KeepingWeakRef, WeakSet,
  apply, bridge, construct, currentTime, defineProperty, getPrototypeOf, hasOwn, keys, now, parse, part, randomBytes, setPrototypeOf,
  setQuietTimeout, stringify, table, textOf,
  errorClasses: { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError },
  views: table(),
  loaded: (name) => loadedParts[name],
};
for (const name of [
  'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'Float16Array',
  'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array',
]) {
  kit.views[name] = globalThis[name];
}

const loadedParts = table();

/** What a part of the prelude has made, run at most once. */
function part(name) {
  const known = loadedParts[name];
  if (known !== undefined) return known;
  const made = host.part(name, host)(host, kit);
  loadedParts[name] = made;
  return made;
}

const LAZY_GLOBALS = {
  __proto__: null,
  blob: ['Blob', 'File', 'FormData'],
  buffer: ['Buffer'],
  console: ['console'],
  encoding: ['TextDecoder', 'TextEncoder'],
  events: ['AbortController', 'AbortSignal', 'CustomEvent', 'Event', 'EventTarget'],
  fetch: ['Headers', 'Request', 'Response', 'fetch'],
  intl: ['Intl'],
  streams: [
    'ByteLengthQueuingStrategy', 'CountQueuingStrategy', 'ReadableStream', 'ReadableStreamDefaultController',
    'ReadableStreamDefaultReader', 'TextDecoderStream', 'TextEncoderStream', 'TransformStream', 'TransformStreamDefaultController',
    'WritableStream', 'WritableStreamDefaultController', 'WritableStreamDefaultWriter',
  ],
  structured_clone: ['structuredClone'],
  subtle: ['CryptoKey', 'SubtleCrypto'],
  url: ['URL', 'URLSearchParams'],
};
for (const from in LAZY_GLOBALS) {
  for (const name of LAZY_GLOBALS[from]) {
    defineProperty(globalThis, name, {
      __proto__: null,
      get() {
        const value = part(from)[name];
        install(name, value);
        return value;
      },
      // A tool may put its own in its place.
      set(value) {
        install(name, value);
      },
      enumerable: false,
      configurable: true,
    });
  }
}
