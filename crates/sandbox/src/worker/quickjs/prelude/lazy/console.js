// The console: each call is one entry of the run's log. `inspect_layout.js` comes first.
function safely(work) {
  try {
    return work();
  } catch {
    return '[unprintable value]';
  }
}

function asString(value) {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : `${value}`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (value instanceof Error || value instanceof Date) return value instanceof Date ? inspect(value) : String(value);
  // An object with a text of its own shows that.
  let at = value;
  while (at !== null && !hasOwn(at, 'toString')) at = getPrototypeOf(at);
  return at === null || at === Object.prototype || at === Array.prototype ? inspect(value, 0) : String(value);
}

function asNumber(value, convert) {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return 'NaN';
  const number = convert(value);
  return Object.is(number, -0) ? '-0' : `${number}`;
}

function asJson(value) {
  try {
    return String(stringify(value));
  } catch (error) {
    if (String(error?.message).includes('circular')) return '[Circular]';
    throw error;
  }
}

const DIRECTIVES = {
  __proto__: null,
  s: asString,
  d: (value) => asNumber(value, (item) => (typeof item === 'object' ? NaN : Number(item))),
  i: (value) => asNumber(value, (item) => (typeof item === 'object' ? NaN : parseInteger(item))),
  f: (value) => asNumber(value, parseNumber),
  j: asJson,
  o: (value) => inspect(value, 4),
  O: (value) => inspect(value),
  c: () => '',
};
const { parseInt: parseInteger, parseFloat: parseNumber } = Number;

function format(values) {
  const [first, ...rest] = values;
  if (typeof first !== 'string') return values.map((value) => safely(() => (typeof value === 'string' ? value : inspect(value)))).join(' ');
  let used = 0;
  const text = rest.length === 0 ? first : first.replace(/%([sdifjoOc%])/g, (whole, directive) => {
    if (directive === '%') return '%';
    if (used >= rest.length) return whole;
    const value = rest[used];
    used += 1;
    return safely(() => DIRECTIVES[directive](value));
  });
  return [text, ...rest.slice(used).map((value) => safely(() => (typeof value === 'string' ? value : inspect(value))))].join(' ');
}

const GROUP_INDENT = 2;
let groups = 0;
const counts = new Map();
const timers = new Map();

function write(level, text) {
  const indent = ' '.repeat(groups * GROUP_INDENT);
  host.log(level, (indent === '' ? text : indent + text.replaceAll('\n', `\n${indent}`)).toWellFormed());
}
const logger = (level) => (...values) => write(level, format(values));

function elapsed(label) {
  const milliseconds = now() - timers.get(label);
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(3)}s`;
  return `${Number(milliseconds.toFixed(3))}ms`;
}

function renderTable(columns) {
  const widths = columns.map((column) => Math.max(...column.map((cell) => cell.length)) + 2);
  const rule = (left, middle, right) => left + widths.map((width) => '─'.repeat(width)).join(middle) + right;
  const row = (at) =>
    `│${columns.map((column, index) => ` ${column[at].padEnd(widths[index] - 1)}`).join('│')}│`;
  const lines = [rule('┌', '┬', '┐'), row(0), rule('├', '┼', '┤')];
  for (let at = 1; at < columns[0].length; at += 1) lines.push(row(at));
  return [...lines, rule('└', '┴', '┘')].join('\n');
}

function tableOf(data, chosen) {
  const cell = (value) => safely(() => inspect(value, typeof value === 'object' && value !== null ? -1 : 0));
  const isMap = data instanceof Map;
  const isSet = data instanceof Set;
  const rows = firstOf(isMap ? data.entries() : isSet ? data.values() : keys(data));
  const index = [isMap || isSet ? '(iteration index)' : '(index)'];
  const names = isMap ? ['Key', 'Values'] : [...(chosen ?? [])];
  const cells = new Map(names.map((name) => [name, []]));
  const values = [];
  rows.forEach((row, at) => {
    index.push(isMap || isSet ? `${at}` : `${row}`);
    if (isMap) {
      cells.get('Key')[at] = cell(row[0]);
      cells.get('Values')[at] = cell(row[1]);
      return;
    }
    const value = isSet ? row : data[row];
    if ((typeof value !== 'object' || value === null) && typeof value !== 'function') {
      values[at] = cell(value);
      return;
    }
    for (const name of chosen ?? keys(value)) {
      if (!cells.has(name)) cells.set(name, []);
      if (hasOwn(value, name)) cells.get(name)[at] = cell(value[name]);
    }
  });
  const fill = (name, column) => [name, ...rows.map((_, at) => column[at] ?? '')];
  const columns = [index, ...[...cells].map(([name, column]) => fill(`${name}`, column))];
  if (values.length > 0) columns.push(fill('Values', values));
  return renderTable(columns);
}

const log = logger('info');
const console = {
  log,
  info: logger('info'),
  debug: logger('debug'),
  warn: logger('warn'),
  error: logger('error'),
  trace(...values) {
    const title = values.length === 0 ? 'Trace' : `Trace: ${format(values)}`;
    write('debug', `${title}\n${new Error().stack ?? ''}`.trimEnd());
  },
  dir(value, options = undefined) {
    const depth = options?.depth === null || options?.depth === Infinity ? MAX_TREE_DEPTH : Number(options?.depth ?? MAX_DEPTH);
    write('info', safely(() => inspect(value, Math.min(depth, MAX_TREE_DEPTH))));
  },
  dirxml: logger('info'),
  table(data = undefined, columns = undefined) {
    if (typeof data !== 'object' || data === null) return log(data);
    return write('info', safely(() => tableOf(data, columns === undefined ? undefined : [...columns].map(String))));
  },
  assert(condition = false, ...values) {
    if (condition) return;
    values[0] = values.length === 0 ? 'Assertion failed' : `Assertion failed: ${textOf(values[0])}`;
    write('error', format(values));
  },
  group(...values) {
    if (values.length > 0) log(...values);
    groups = Math.min(groups + 1, MAX_GROUPS);
  },
  groupCollapsed(...values) {
    console.group(...values);
  },
  groupEnd() {
    groups = Math.max(0, groups - 1);
  },
  count(label = 'default') {
    const name = `${label}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    log(`${name}: ${counts.get(name)}`);
  },
  countReset(label = 'default') {
    counts.delete(`${label}`);
  },
  time(label = 'default') {
    if (!timers.has(`${label}`)) timers.set(`${label}`, now());
  },
  timeLog(label = 'default', ...values) {
    if (timers.has(`${label}`)) log(...[`${label}: ${elapsed(`${label}`)}`, ...values]);
  },
  timeEnd(label = 'default') {
    if (!timers.has(`${label}`)) return;
    log(`${label}: ${elapsed(`${label}`)}`);
    timers.delete(`${label}`);
  },
  clear() {},
};
const MAX_TREE_DEPTH = 20;
const MAX_GROUPS = 50;
return { __proto__: null, console, log, inspect };
