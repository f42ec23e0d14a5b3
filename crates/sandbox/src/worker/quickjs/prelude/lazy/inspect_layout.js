// The lists inside of braces, and how they are broken into lines; `inspect.js` comes first.
const remaining = (count) => (count > 0 ? [`... ${count} more item${count > 1 ? 's' : ''}`] : []);

function showKey(key, hidden) {
  if (typeof key === 'symbol') return `[${String(key)}]`;
  if (hidden.includes(key)) return `[${key}]`;
  if (key === '__proto__') return "['__proto__']";
  return /^[a-zA-Z_$][\w$]*$/.test(key) && !key.includes('$') ? key : quoted(key);
}

function showProperty(ctx, owner, key, hidden) {
  const descriptor = getOwnPropertyDescriptor(owner, key) ?? { value: owner[key], enumerable: true };
  let text;
  if (descriptor.get !== undefined) text = descriptor.set === undefined ? '[Getter]' : '[Getter/Setter]';
  else if (descriptor.set !== undefined) text = '[Setter]';
  else text = indented(ctx, () => show(ctx, descriptor.value));
  return `${showKey(key, descriptor.enumerable ? [] : hidden)}: ${text}`;
}

function indented(ctx, work) {
  ctx.indent += 2;
  try {
    return work();
  } finally {
    ctx.indent -= 2;
  }
}

function listArray(ctx, value) {
  const output = [];
  let at = 0;
  while (at < value.length && output.length < MAX_ITEMS) {
    if (hasOwn(value, at)) {
      const item = value[at];
      output.push(indented(ctx, () => show(ctx, item)));
      at += 1;
      continue;
    }
    const start = at;
    // A hole may be huge; its end is found among the keys.
    const next = keys(value).find((key) => /^\d+$/.test(key) && Number(key) > start);
    at = next === undefined ? value.length : Number(next);
    output.push(`<${at - start} empty item${at - start > 1 ? 's' : ''}>`);
  }
  return [...output, ...remaining(value.length - at)];
}

function firstOf(items) {
  const first = [];
  for (const item of items) {
    if (first.length === MAX_ITEMS) break;
    first.push(item);
  }
  return first;
}

function listSet(ctx, value) {
  const items = firstOf(value).map((item) => indented(ctx, () => show(ctx, item)));
  return [...items, ...remaining(value.size - items.length)];
}

function listMap(ctx, value) {
  const items = firstOf(value).map(([key, item]) => indented(ctx, () => `${show(ctx, key)} => ${show(ctx, item)}`));
  return [...items, ...remaining(value.size - items.length)];
}

function listNumbers(ctx, value) {
  const shown = Math.min(value.length, MAX_ITEMS);
  const output = [];
  for (let at = 0; at < shown; at += 1) output.push(showPrimitive(ctx, value[at]));
  return [...output, ...remaining(value.length - shown)];
}

/** Short items in columns, as wide as they are high. */
function grouped(ctx, output, value) {
  const hasRest = output.length > MAX_ITEMS;
  const count = hasRest ? output.length - 1 : output.length;
  const lengths = output.slice(0, count).map((item) => item.length);
  const separator = 2;
  const total = lengths.reduce((sum, length) => sum + length + separator, 0);
  const longest = Math.max(...lengths);
  const widest = longest + separator;
  if (widest * 3 + ctx.indent >= ctx.width || (total / widest <= 5 && longest > 6)) return output;
  const bias = Math.sqrt(widest - total / output.length);
  const biased = Math.max(widest - 3 - bias, 1);
  const columns = Math.min(Math.round(Math.sqrt(2.5 * biased * count) / biased), Math.floor((ctx.width - ctx.indent) / widest), 12, 15);
  if (columns <= 1) return output;
  const widths = [];
  for (let column = 0; column < columns; column += 1) {
    let width = 0;
    for (let at = column; at < count; at += columns) width = Math.max(width, lengths[at]);
    widths.push(width + separator);
  }
  let numbers = true;
  for (let at = 0; at < output.length && numbers; at += 1) numbers = typeof value[at] === 'number' || typeof value[at] === 'bigint';
  const lines = [];
  for (let at = 0; at < count; at += columns) {
    const end = Math.min(at + columns, count);
    let line = '';
    let index = at;
    for (; index < end - 1; index += 1) {
      const cell = `${output[index]}, `;
      line += numbers ? cell.padStart(widths[index - at]) : cell.padEnd(widths[index - at]);
    }
    lines.push(line + (numbers ? output[index].padStart(widths[index - at] - separator) : output[index]));
  }
  if (hasRest) lines.push(output[count]);
  return lines;
}

function joined(ctx, output, shape, level, value) {
  const entries = output.length;
  const lines = shape.isList && entries > 6 ? grouped(ctx, output, value) : output;
  const base = shape.base === '' ? '' : `${shape.base} `;
  if (ctx.deepest - level < 3 && entries === lines.length) {
    const start = lines.length + ctx.indent + shape.open.length + shape.base.length + 10;
    const length = lines.reduce((sum, line) => sum + line.length, lines.length + start);
    if (length <= ctx.width && !shape.base.includes('\n')) {
      const text = lines.join(', ');
      if (!text.includes('\n')) return `${base}${shape.open} ${text} ${shape.close}`;
    }
  }
  const indent = `\n${' '.repeat(ctx.indent)}`;
  return `${base}${shape.open}${indent}  ${lines.join(`,${indent}  `)}${indent}${shape.close}`;
}

function show(ctx, value) {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return showPrimitive(ctx, value);
  if (ctx.seen.includes(value)) {
    if (!ctx.circular.includes(value)) ctx.circular.push(value);
    return `[Circular *${ctx.circular.indexOf(value) + 1}]`;
  }
  const custom = value[CUSTOM];
  if (typeof custom === 'function') {
    const shown = custom.call(value, ctx.depth - ctx.seen.length, {}, (item) => inspect(item));
    if (shown !== value) return typeof shown === 'string' ? shown : show(ctx, shown);
  }
  const shape = shapeOf(ctx, value);
  if (typeof shape === 'string') return shape;
  const level = ctx.seen.length;
  if (level > ctx.depth) {
    const name = classOf(value);
    return `[${prefixOf(name, tagOf(value, name), Array.isArray(value) ? 'Array' : 'Object').slice(0, -1)}]`;
  }
  ctx.seen.push(value);
  ctx.deepest = level;
  let output;
  try {
    output = shape.list();
    for (const key of shape.own.slice(0, MAX_KEYS)) output.push(showProperty(ctx, value, key, shape.hidden ?? []));
    output.push(...remaining(shape.own.length - MAX_KEYS));
  } finally {
    ctx.seen.pop();
  }
  if (ctx.circular.includes(value)) {
    const reference = `<ref *${ctx.circular.indexOf(value) + 1}>`;
    if (shape.base === '') shape.open = `${reference} ${shape.open}`;
    else shape.base = `${reference} ${shape.base}`;
  }
  if (output.length === 0) return shape.base === '' ? `${shape.open}${shape.close}` : shape.base;
  return joined(ctx, output, shape, level, value);
}

function inspect(value, depth = MAX_DEPTH) {
  return show({ indent: 0, width: 80, depth, seen: [], circular: [], deepest: 0 }, value);
}
