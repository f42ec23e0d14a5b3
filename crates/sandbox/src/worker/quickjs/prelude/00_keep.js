// What the prelude needs later is kept now, before any tool can change it.
const {
  AggregateError, Array, ArrayBuffer, BigInt, Boolean, DataView, Date, DOMException, Error, EvalError, JSON, Map, Math, Number,
  Object, Promise, RangeError, ReferenceError, Reflect, RegExp, Set, String, Symbol, SyntaxError, TypeError, Uint8Array, URIError,
  WeakMap, WeakSet,
} = globalThis;
const stringify = JSON.stringify;
const parse = JSON.parse;
const { defineProperty, hasOwn, keys, setPrototypeOf } = Object;
const { apply, construct } = Reflect;
const { isView } = ArrayBuffer;

/** A table no tool can reach: it has no methods that a tool could replace. */
const table = () => ({ __proto__: null });

/** Puts a name on the global object the way built-ins are there: writable, not listed. */
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

// A tool has no way to make code from text; the engine refuses it too, having no parser in this context. The
// constructors are here all the same, because packages read their prototypes.
function refuseSource(name, prototype) {
  const refusing = {
    [name]: function (...source) {
      // The old way to the global object, which needs no compiler.
      if (name === 'Function' && source.length === 1 && source[0] === 'return this') return () => globalThis;
      throw new EvalError(`${name}: a tool cannot make code from text; write the function in its source`);
    },
  }[name];
  defineProperty(refusing, 'prototype', { __proto__: null, value: prototype, writable: false, enumerable: false });
  if (prototype !== undefined) defineProperty(prototype, 'constructor', { __proto__: null, value: refusing, configurable: true });
  return refusing;
}
const getPrototypeOf = Object.getPrototypeOf;
const RefusingFunction = refuseSource('Function', getPrototypeOf(() => {}));
for (const [name, prototype] of [
  ['AsyncFunction', getPrototypeOf(async () => {})],
  ['GeneratorFunction', getPrototypeOf(function* () {})],
  ['AsyncGeneratorFunction', getPrototypeOf(async function* () {})],
]) {
  setPrototypeOf(refuseSource(name, prototype), RefusingFunction);
}
install('Function', RefusingFunction);
install('eval', function (source) {
  if (typeof source !== 'string') return source;
  throw new EvalError('eval: a tool cannot make code from text; write it in the source of the tool');
});
install('self', globalThis);
install('global', globalThis);
// It would be handed the functions of the prelude and of the host that are on the stack.
delete Error.prepareStackTrace;
delete globalThis.SharedArrayBuffer;
delete globalThis.Atomics;
