// What the prelude needs later is kept now, before any tool can change it.
const {
  Array, ArrayBuffer, Date, DOMException, Error, JSON, Map, Math, Number, Object, Promise, Reflect, RegExp, Set,
  String, Symbol, TypeError, Uint8Array, WeakMap,
} = globalThis;
const stringify = JSON.stringify;
const parse = JSON.parse;
const { defineProperty, hasOwn, keys, setPrototypeOf } = Object;
const { apply, construct } = Reflect;

/** A table no tool can reach: it has no methods that somebody could replace. */
const table = () => ({ __proto__: null });

/** Puts a name on the global object the way built-ins stand there: writable, not listed. */
function install(name, value) {
  defineProperty(globalThis, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
}

/** Text of any value, whatever its own toString does. */
function textOf(value) {
  try {
    return String(value);
  } catch {
    return '[unprintable value]';
  }
}

// `using` looks for these; the engine does not have them yet.
for (const name of ['dispose', 'asyncDispose']) {
  if (!(name in Symbol)) defineProperty(Symbol, name, { value: Symbol(`Symbol.${name}`) });
}

// A tool has no way to make code from text; the engine refuses it too, having no parser in this context.
delete globalThis.eval;
delete globalThis.Function;
// It would be handed the functions of the prelude and of the host that stand on the stack.
delete Error.prepareStackTrace;
delete globalThis.SharedArrayBuffer;
delete globalThis.Atomics;
