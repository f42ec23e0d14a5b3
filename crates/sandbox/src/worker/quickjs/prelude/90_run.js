// One run, from arguments to a JSON text.
const MAX_ERROR_TEXT = 8192;
/** For an error inside another one. */
const MAX_INNER_TEXT = 512;
const MAX_CAUSES = 8;
const MAX_INNER_ERRORS = 16;

async function start(entry, argumentsJson, callDefault, optionsJson) {
  const options = parse(optionsJson);
  seedWith(options.seed, options.seeded);
  startClock();
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
  // Done while the caps still hold, because a getter or toJSON may run tool code.
  return host.resultJson(value);
}

/** A property of a thrown value as text, as far as it can be asked safely. */
function askText(thrown, name, limit) {
  try {
    const value = thrown[name];
    return typeof value === 'string' ? wellFormed(clip(value, limit)) : '';
  } catch {
    return '';
  }
}
const { slice, toWellFormed } = String.prototype;
const clip = (text, limit) => apply(slice, text, [0, limit]);
const wellFormed = (text) => apply(toWellFormed, text, []);

function isErrorLike(thrown) {
  try {
    return thrown instanceof Error || (typeof thrown === 'object' && thrown !== null && typeof thrown.message === 'string');
  } catch {
    return false;
  }
}

/** One line for an error inside another one. */
function briefly(thrown) {
  if (!isErrorLike(thrown)) return wellFormed(clip(shown(thrown), MAX_INNER_TEXT));
  const name = askText(thrown, 'name', MAX_INNER_TEXT);
  const message = askText(thrown, 'message', MAX_INNER_TEXT);
  return name === '' || name === 'Error' ? message : message === '' ? name : `${name}: ${message}`;
}

function shown(value) {
  if (typeof value === 'string') return value;
  try {
    return part('console').inspect(value);
  } catch {
    return '[unprintable value]';
  }
}

/** The chain of `cause` below an error, outermost first. */
function causesOf(thrown) {
  const causes = [];
  const seen = [thrown];
  let at = thrown;
  while (causes.length < MAX_CAUSES) {
    try {
      if (typeof at !== 'object' || at === null || !hasOwn(at, 'cause')) break;
      at = at.cause;
    } catch {
      break;
    }
    if (at === undefined || seen.includes(at)) break;
    defineProperty(seen, seen.length, { __proto__: null, value: at });
    defineProperty(causes, causes.length, { __proto__: null, value: briefly(at), enumerable: true });
  }
  return setPrototypeOf(causes, null);
}

/** The errors of an AggregateError. */
function errorsOf(thrown) {
  const errors = [];
  try {
    const inner = thrown.errors;
    if (thrown instanceof AggregateError && Array.isArray(inner)) {
      for (let at = 0; at < inner.length && at < MAX_INNER_ERRORS; at += 1) {
        defineProperty(errors, at, { __proto__: null, value: briefly(inner[at]), enumerable: true });
      }
    }
  } catch {
    // A getter that throws has nothing to say.
  }
  return setPrototypeOf(errors, null);
}

/** What a thrown value says of itself, as far as it can be asked safely. */
function describe(thrown) {
  const isError = isErrorLike(thrown);
  const ask = (name) => (isError ? askText(thrown, name, MAX_ERROR_TEXT) : '');
  const message = isError ? ask('message') : wellFormed(`the tool threw ${clip(shown(thrown), MAX_ERROR_TEXT)}`);
  return stringify({
    __proto__: null,
    name: ask('name'),
    message,
    stack: ask('stack'),
    code: ask('code'),
    causes: isError ? causesOf(thrown) : null,
    errors: isError ? errorsOf(thrown) : null,
  });
}

return { start, settle, fireTimer, describe, waitingStack, requireFrom, load: (id) => loadFor('', id), callUpstream, callHost };
