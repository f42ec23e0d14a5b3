// One run, from arguments to a JSON text.
const MAX_ERROR_TEXT = 8192;

async function start(entry, argumentsJson, callDefault, optionsJson) {
  const options = parse(optionsJson);
  seedWith(options.seed, options.seeded);
  if (options.clock !== null) freezeClock(options.clock);
  if (options.environment !== null) install('process', { env: options.environment });
  const values = parse(argumentsJson);
  install('args', values);

  let value;
  if (host.isCommonJs(entry)) {
    value = loadCommonJs(entry);
    if (typeof value !== 'function' && typeof value?.default === 'function') value = value.default;
  } else {
    await host.evaluate(entry);
    value = host.namespace(entry).default;
  }
  if (callDefault && typeof value === 'function') value = await value(values);
  else value = await value;
  return finish(value);
}

/** JSON of the result. Done while the caps still hold, because a getter or toJSON may run tool code. */
function finish(value) {
  const json = stringify(value);
  if (json === undefined) {
    if (value === undefined) return 'null';
    throw new TypeError(`a tool's result must be JSON, not a ${typeof value}`);
  }
  if (json.length > host.outputCap()) {
    host.violate(`the result has ${json.length} characters, more than the output cap of ${host.outputCap()}`);
  }
  return json;
}

/** What a thrown value says of itself, as far as it can be asked safely. */
function describe(thrown) {
  const ask = (name) => {
    try {
      const value = thrown[name];
      return typeof value === 'string' ? value.slice(0, MAX_ERROR_TEXT).toWellFormed() : '';
    } catch {
      return '';
    }
  };
  const isObject = typeof thrown === 'object' && thrown !== null;
  let isError = false;
  try {
    isError = thrown instanceof Error || (isObject && typeof thrown.message === 'string');
  } catch {
    isError = false;
  }
  let message = isError ? ask('message') : '';
  if (!isError) {
    let shown;
    try {
      shown = inspect(thrown, 0, []);
    } catch {
      shown = '[unprintable value]';
    }
    message = `the tool threw ${shown.slice(0, MAX_ERROR_TEXT)}`.toWellFormed();
  }
  return stringify({ __proto__: null, name: isError ? ask('name') : '', message, stack: isError ? ask('stack') : '', code: isError ? ask('code') : '' });
}

return { start, settle, fireTimer, describe, requireFrom, load: (id) => loadFor('', id) };
