// The `tgp` global: every call crosses to the kernel as JSON, with the bytes of a file beside it, and comes back as a promise.
const pendingCalls = table();
const { getTime: timeOfDate, toISOString: textOfDate } = Date.prototype;

/** The exact text of a date; null when it is invalid. */
function isoOf(date) {
  const time = apply(timeOfDate, date, []);
  return time === time ? apply(textOfDate, date, []) : null;
}

function bridge(name, values, signal, bytes) {
  return new Promise((resolve, reject) => {
    const call = host.call(name, host.argumentsJson(name, values, isoOf), bytes);
    // Made here, so that its stack says where the tool made the call.
    const error = new Error();
    pendingCalls[call] = { __proto__: null, resolve, reject, error };
    if (signal !== undefined && signal !== null) {
      const stop = () => {
        if (pendingCalls[call] === undefined) return;
        delete pendingCalls[call];
        host.cancelCall(call);
        reject(signal.reason);
      };
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    }
  });
}

/** The kernel's loop calls this with the answer to a call. */
function settle(call, code, text, bytes) {
  releaseKept();
  const pending = pendingCalls[call];
  if (pending === undefined) return;
  delete pendingCalls[call];
  if (code === undefined) {
    pending.resolve(bytes === undefined ? parse(text) : bytes);
    return;
  }
  const { error } = pending;
  defineProperty(error, 'message', { __proto__: null, value: text, writable: true, configurable: true, enumerable: false });
  defineProperty(error, 'code', { __proto__: null, value: code, writable: true, configurable: true, enumerable: true });
  pending.reject(error);
}

/** The stack of the oldest call without an answer, for a run whose time is up. */
function waitingStack() {
  const [oldest] = keys(pendingCalls);
  return oldest === undefined ? '' : textOf(pendingCalls[oldest].error.stack);
}

// The rows, and beside them what else a statement says: how many rows it changed, and whether rows were cut off.
async function rowsOfStatement(sql, params = [], options = undefined) {
  const { rows, changed, truncated } = await onDatabase(() => bridge('exec_sql', [sql, params, options]));
  defineProperty(rows, 'changed', { __proto__: null, value: changed });
  defineProperty(rows, 'truncated', { __proto__: null, value: truncated });
  return rows;
}

// A query that is being closed. A loop that is left by an error does not wait for that, so what follows it does: on MySQL
// no other statement may overlap a query.
let closing = null;

function closeQuery(cursor) {
  const closed = bridge('query_close', [cursor]);
  const noted = (async () => {
    try {
      await closed;
    } catch {
      // Who left the loop is told.
    }
    if (closing === noted) closing = null;
  })();
  closing = noted;
  return closed;
}

async function afterClosing(call) {
  while (closing !== null) await closing;
  return call();
}

/** Makes a call that uses the database when no query is being closed. */
const onDatabase = (call) => (closing === null ? call() : afterClosing(call));

const asyncIteratorPrototype = getPrototypeOf(getPrototypeOf(async function* () {}).prototype);
const rowAnswer = async (value) => ({ value, done: false });
const atEnd = (value) => ({ value, done: true });

// The rows of a query in batches, each of which is one call. A loop that is left early closes the query.
function rowsInBatches(sql, params, options) {
  let rows = [];
  let at = 0;
  let cursor;
  let isOver = false;
  let last = null;
  const nextRow = async () => {
    while (!isOver) {
      if (at < rows.length) return { value: rows[at++], done: false };
      if (cursor === null) break;
      try {
        const isFirst = cursor === undefined;
        const batch = await (isFirst
          ? onDatabase(() => bridge('query', [sql, params, options]))
          : bridge('query_next', [cursor, options]));
        rows = batch.rows;
        at = 0;
        if (isFirst) cursor = batch.cursor;
        else if (batch.done) cursor = null;
      } catch (error) {
        // A batch that fails has closed it.
        isOver = true;
        throw error;
      }
    }
    isOver = true;
    return atEnd(undefined);
  };
  const finish = () => {
    const open = isOver ? null : cursor;
    isOver = true;
    return open === null || open === undefined ? undefined : closeQuery(open);
  };
  /** Steps that nobody has waited for are done one after the other. */
  const inTurn = (step) => {
    const before = last;
    const turn = (async () => {
      try {
        if (before !== null) await before;
      } catch {
        // The step before has told its caller.
      }
      return step();
    })();
    last = turn;
    (async () => {
      try {
        await turn;
      } catch {
        // As above.
      }
      if (last === turn) last = null;
    })();
    // A promise of its own, so that a failure that nobody handles is noticed.
    return (async () => turn)();
  };
  return {
    __proto__: asyncIteratorPrototype,
    next: () =>
      last === null && !isOver && at < rows.length
        ? rowAnswer(rows[at++])
        : inTurn(nextRow),
    return: (value) => inTurn(async () => (await finish(), atEnd(value))),
    throw: (error) =>
      inTurn(async () => {
        await finish();
        throw error;
      }),
  };
}

/** The encoding that a tool has asked for, in one of the two ways that it knows from elsewhere. */
function encodingOf(options) {
  if (options === undefined || options === null || typeof options === 'string') return options ?? 'utf-8';
  for (const name of keys(options)) {
    if (name !== 'encoding') throw new TypeError(`tgp.read_file has no option \`${name}\`, only \`encoding\``);
  }
  return options.encoding ?? 'utf-8';
}

async function readFile(path, options) {
  const encoding = encodingOf(options);
  if (encoding === 'bytes') return bridge('read_file', [path, 'bytes']);
  const { TextDecoder } = encoding === 'utf-8' || encoding === 'utf8' ? {} : part('encoding');
  if (TextDecoder === undefined) return bridge('read_file', [path]);
  // Made first: an unknown encoding is an error whatever the file is.
  const decoder = new TextDecoder(encoding);
  return decoder.decode(await bridge('read_file', [path, 'bytes']));
}

function writeFile(path, content) {
  const isBytes = typeof content === 'object' && content !== null && (content instanceof ArrayBuffer || isView(content));
  if (!isBytes) return bridge('write_file', [path, content]);
  return bridge('write_file', [path], undefined, part('encoding').bytesOf(content));
}

/** What the functions of `mcp:SERVER` do. */
const callUpstream = (server, tool, values) => bridge('call_upstream', [server, tool, values]);

/** What the functions of `host:MODULE` do. */
const callHost = (module, name, values) => bridge('call_host', [module, name, values]);

install('tgp', Object.freeze({
  read_file: readFile,
  write_file: writeFile,
  list_files: (directory = '') => bridge('list_files', [directory]),
  exec_tool: (path, values = {}, options) =>
    onDatabase(() => bridge('exec_tool', options === undefined ? [path, values] : [path, values, options])),
  exec_sql: rowsOfStatement,
  query: (sql, params = [], options = undefined) => rowsInBatches(sql, params, options),
  fetch: (...values) => part('fetch').fetch(...values),
  log: (...values) => part('console').log(...values),
}));
