// Values as a person reads them in a log.
const MAX_INSPECT_DEPTH = 4;
const MAX_INSPECT_ITEMS = 100;

/** The first items of anything that can be iterated: a log never walks a whole collection. */
function firstOf(items) {
  const first = [];
  for (const item of items) {
    if (first.length === MAX_INSPECT_ITEMS) break;
    first.push(item);
  }
  return first;
}

function clip(items, count, show) {
  const shown = items.map((item) => show(item));
  if (count > shown.length) shown.push(`… ${count - shown.length} more`);
  return shown.join(', ');
}

function inspect(value, depth, seen) {
  if (typeof value === 'string') return depth === 0 ? value : stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return `[Function: ${textOf(value.name) || 'anonymous'}]`;
  if (typeof value !== 'object' || value === null) return textOf(value);
  if (seen.includes(value)) return '[Circular]';
  if (value instanceof Error) return textOf(value.stack ? `${value}\n${value.stack}` : value).trimEnd();
  if (value instanceof Date) return textOf(stringify(value)).replaceAll('"', '');
  if (value instanceof RegExp) return textOf(value);
  if (value instanceof Promise) return 'Promise {}';
  if (depth >= MAX_INSPECT_DEPTH) return Array.isArray(value) ? '[Array]' : '[Object]';
  const inner = [...seen, value];
  const show = (item) => inspect(item, depth + 1, inner);
  if (Array.isArray(value)) return `[${clip(firstOf(value), value.length, show)}]`;
  if (value instanceof Map) return `Map(${value.size}) {${clip(firstOf(value), value.size, ([key, item]) => `${show(key)} => ${show(item)}`)}}`;
  if (value instanceof Set) return `Set(${value.size}) {${clip(firstOf(value), value.size, show)}}`;
  if (ArrayBuffer.isView(value)) {
    const length = value.length ?? value.byteLength;
    return `${value.constructor?.name}(${length}) [${clip(value.length === undefined ? [] : firstOf(value), length, textOf)}]`;
  }
  const name = value.constructor?.name;
  const prefix = typeof name === 'string' && name !== 'Object' && name !== '' ? `${name} ` : '';
  const names = keys(value);
  const body = clip(names.slice(0, MAX_INSPECT_ITEMS), names.length, (key) => `${/^[\w$]+$/.test(key) ? key : stringify(key)}: ${show(value[key])}`);
  return body === '' ? `${prefix}{}` : `${prefix}{ ${body} }`;
}

function formatLog(values) {
  const parts = [...values].map((value) => {
    try {
      return inspect(value, 0, []);
    } catch {
      return '[unprintable value]';
    }
  });
  return parts.join(' ').toWellFormed();
}

const logger = (level) => (...values) => {
  host.log(level, formatLog(values));
};
install('console', {
  log: logger('info'),
  info: logger('info'),
  debug: logger('debug'),
  trace: logger('debug'),
  warn: logger('warn'),
  error: logger('error'),
  table: logger('info'),
  dir: logger('info'),
  assert(condition, ...values) {
    if (!condition) host.log('error', formatLog(['Assertion failed:', ...values]));
  },
  group: logger('info'),
  groupEnd() {},
  time() {},
  timeEnd() {},
});
