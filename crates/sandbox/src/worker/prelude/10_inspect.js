// Values as a person reads them in a log.
const MAX_INSPECT_DEPTH = 4;
const MAX_INSPECT_ITEMS = 100;

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
  const clip = (items) => {
    const shown = items.slice(0, MAX_INSPECT_ITEMS);
    if (items.length > shown.length) shown.push(`… ${items.length - shown.length} more`);
    return shown.join(', ');
  };
  if (Array.isArray(value)) return `[${clip(Array.from({ length: value.length }, (_, at) => (at <= MAX_INSPECT_ITEMS ? show(value[at]) : '')))}]`;
  if (value instanceof Map) return `Map(${value.size}) {${clip([...value].map(([key, item]) => `${show(key)} => ${show(item)}`))}}`;
  if (value instanceof Set) return `Set(${value.size}) {${clip([...value].map(show))}}`;
  if (ArrayBuffer.isView(value)) return `${value.constructor?.name}(${value.length ?? value.byteLength}) [${clip(Array.from(value.subarray?.(0, MAX_INSPECT_ITEMS + 1) ?? []).map(textOf))}]`;
  const name = value.constructor?.name;
  const prefix = typeof name === 'string' && name !== 'Object' && name !== '' ? `${name} ` : '';
  const body = clip(Object.keys(value).map((key) => `${/^[\w$]+$/.test(key) ? key : stringify(key)}: ${show(value[key])}`));
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
