// The `tgp` global: every call crosses to the kernel as JSON and comes back as a promise.
const pendingCalls = table();

function bridge(name, values, signal) {
  return new Promise((resolve, reject) => {
    // Without a prototype the list has no toJSON that somebody may have put there.
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

class Headers {
  #pairs = [];
  constructor(init = []) {
    const pairs = typeof init?.[Symbol.iterator] === 'function' ? [...init] : Object.entries(init ?? {});
    for (const [name, value] of pairs) this.append(name, value);
  }
  append(name, value) {
    this.#pairs.push([String(name).toLowerCase(), String(value)]);
  }
  get(name) {
    const found = this.#pairs.filter(([key]) => key === String(name).toLowerCase());
    return found.length === 0 ? null : found.map(([, value]) => value).join(', ');
  }
  has(name) {
    return this.get(name) !== null;
  }
  set(name, value) {
    this.delete(name);
    this.append(name, value);
  }
  delete(name) {
    this.#pairs = this.#pairs.filter(([key]) => key !== String(name).toLowerCase());
  }
  forEach(callback) {
    for (const [name, value] of this.#pairs) callback(value, name, this);
  }
  *entries() {
    yield* this.#pairs.map(([name, value]) => [name, value]);
  }
  [Symbol.iterator]() {
    return this.entries();
  }
}
install('Headers', Headers);

function bytesOfBase64(text) {
  const binary = atob(text);
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function base64OfBytes(bytes) {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

class Response {
  #body;
  #encoding;
  constructor(answer) {
    this.status = answer.status;
    this.statusText = answer.statusText;
    this.ok = answer.status >= 200 && answer.status < 300;
    this.url = answer.url;
    this.redirected = answer.redirected;
    this.headers = new Headers(answer.headers);
    this.#body = answer.body;
    this.#encoding = answer.bodyEncoding;
  }
  async text() {
    return this.#encoding === 'base64' ? new TextDecoder().decode(bytesOfBase64(this.#body)) : this.#body;
  }
  async json() {
    return parse(await this.text());
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  async bytes() {
    return this.#encoding === 'base64' ? bytesOfBase64(this.#body) : new TextEncoder().encode(this.#body);
  }
}

async function fetchThroughKernel(resource, init = {}) {
  const request = { url: String(resource), method: String(init.method ?? 'GET').toUpperCase(), headers: [...new Headers(init.headers)] };
  if (init.redirect !== undefined) request.redirect = init.redirect;
  if (init.body !== undefined && init.body !== null) {
    if (ArrayBuffer.isView(init.body) || init.body instanceof ArrayBuffer) {
      const bytes = ArrayBuffer.isView(init.body)
        ? new Uint8Array(init.body.buffer, init.body.byteOffset, init.body.byteLength)
        : new Uint8Array(init.body);
      request.body = base64OfBytes(bytes);
      request.bodyEncoding = 'base64';
    } else {
      if (!request.headers.some(([name]) => name === 'content-type')) {
        const type = init.body instanceof URLSearchParams ? 'application/x-www-form-urlencoded' : 'text/plain';
        request.headers.push(['content-type', `${type};charset=UTF-8`]);
      }
      request.body = String(init.body).toWellFormed();
      request.bodyEncoding = 'utf8';
    }
  }
  return new Response(await bridge('fetch', [request], init.signal));
}

// The rows, and beside them what else a statement says: how many rows it changed, and whether rows were cut off.
async function rowsOfStatement(sql, params = []) {
  const { rows, changed, truncated } = await bridge('exec_sql', [sql, params]);
  Object.defineProperty(rows, 'changed', { value: changed });
  Object.defineProperty(rows, 'truncated', { value: truncated });
  return rows;
}

install('tgp', Object.freeze({
  read_file: (path) => bridge('read_file', [path]),
  write_file: (path, content) => bridge('write_file', [path, content]),
  list_files: (directory = '') => bridge('list_files', [directory]),
  exec_tool: (path, values = {}) => bridge('exec_tool', [path, values]),
  exec_sql: rowsOfStatement,
  fetch: fetchThroughKernel,
  log: logger('info'),
}));
