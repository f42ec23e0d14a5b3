// The `tgp` global: every call crosses to the kernel as JSON and comes back as a promise.
const pendingCalls = table();

function bridge(name, values, signal) {
  return new Promise((resolve, reject) => {
    // Without a prototype the list has no toJSON that a tool may have put there.
    const text = stringify(setPrototypeOf(values, null));
    const call = host.call(name, text === undefined ? 'null' : text);
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
function settle(call, code, text) {
  releaseKept();
  const pending = pendingCalls[call];
  if (pending === undefined) return;
  delete pendingCalls[call];
  if (code === undefined) {
    pending.resolve(parse(text));
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
async function rowsOfStatement(sql, params = []) {
  const { rows, changed, truncated } = await bridge('exec_sql', [sql, params]);
  defineProperty(rows, 'changed', { __proto__: null, value: changed });
  defineProperty(rows, 'truncated', { __proto__: null, value: truncated });
  return rows;
}

install('tgp', Object.freeze({
  read_file: (path) => bridge('read_file', [path]),
  write_file: (path, content) => bridge('write_file', [path, content]),
  list_files: (directory = '') => bridge('list_files', [directory]),
  exec_tool: (path, values = {}, options) => bridge('exec_tool', options === undefined ? [path, values] : [path, values, options]),
  exec_sql: rowsOfStatement,
  fetch: (...values) => part('fetch').fetch(...values),
  log: (...values) => part('console').log(...values),
}));
