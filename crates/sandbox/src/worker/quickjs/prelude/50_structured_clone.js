// structuredClone for everything that exists here.
const ERROR_CLASSES = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

function cloneInto(value, seen) {
  const refuse = (what) => {
    throw new DOMException(`${what} could not be cloned.`, 'DataCloneError');
  };
  if (typeof value === 'function') refuse(`function ${textOf(value.name)}`);
  if (typeof value === 'symbol') refuse(textOf(value));
  if (typeof value !== 'object' || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  const keep = (copy) => {
    seen.set(value, copy);
    return copy;
  };
  if (value instanceof Date) return keep(new Date(value.getTime()));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) {
    const buffer = cloneInto(value.buffer, seen);
    return keep(new value.constructor(buffer, value.byteOffset, value.length ?? value.byteLength));
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return keep(Object(value.valueOf()));
  if (value instanceof Map) {
    const copy = keep(new Map());
    for (const [key, item] of value) copy.set(cloneInto(key, seen), cloneInto(item, seen));
    return copy;
  }
  if (value instanceof Set) {
    const copy = keep(new Set());
    for (const item of value) copy.add(cloneInto(item, seen));
    return copy;
  }
  if (value instanceof Error) {
    const copy = keep(new (ERROR_CLASSES[value.name] ?? Error)(value.message));
    if ('cause' in value) copy.cause = cloneInto(value.cause, seen);
    return copy;
  }
  if (value instanceof Promise || value instanceof WeakMap) refuse('#<object>');
  const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
  for (const key of Object.keys(value)) copy[key] = cloneInto(value[key], seen);
  return copy;
}
install('structuredClone', (value) => cloneInto(value, new Map()));
