// Request, Response and `fetch` around the bridge to the kernel. `headers.js` and `body.js` come first.
const NO_BODY_STATUS = [101, 103, 204, 205, 304];
const REDIRECT_STATUS = [301, 302, 303, 307, 308];
const FORBIDDEN_METHODS = ['CONNECT', 'TRACE', 'TRACK'];
const NORMAL_METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'];

function methodOf(value) {
  const method = `${value}`;
  const upper = method.toUpperCase();
  if (forKernel) return upper;
  if (!TOKEN.test(method) || FORBIDDEN_METHODS.includes(upper)) throw new TypeError(`'${method}' is not a valid HTTP method.`);
  return NORMAL_METHODS.includes(upper) ? upper : method;
}

class Request extends Body {
  #method = 'GET';
  #url;
  #headers;
  #redirect = 'follow';
  #signal;
  #rest = { __proto__: null };
  constructor(input, init = undefined) {
    if (arguments.length === 0) throw new TypeError("Failed to construct 'Request': 1 argument required, but only 0 present.");
    super();
    const from = isRequest(input) ? input : undefined;
    if (from === undefined && forKernel) {
      this.#url = `${input}`.toWellFormed();
    } else if (from === undefined) {
      const url = urlParts(`${input}`.toWellFormed());
      if (url === undefined) throw new TypeError(`Failed to parse URL from ${input}`);
      if (url.username !== '' || url.password !== '') {
        throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${input}`);
      }
      this.#url = url.href;
    } else {
      this.#url = from.#url;
      this.#method = from.#method;
      this.#redirect = from.#redirect;
      this.#signal = from.#signal;
    }
    if (init?.method !== undefined) this.#method = methodOf(init.method);
    if (init?.redirect !== undefined) {
      if (!forKernel && !['follow', 'error', 'manual'].includes(init.redirect)) throw new TypeError(`'${init.redirect}' is not a valid redirect mode.`);
      this.#redirect = init.redirect;
    }
    if (init?.signal !== undefined) this.#signal = init.signal ?? undefined;
    this.#headers = new Headers(init?.headers ?? from?.headers);
    for (const name of ['cache', 'credentials', 'integrity', 'keepalive', 'mode', 'referrer', 'referrerPolicy']) {
      this.#rest[name] = init?.[name] ?? from?.[name];
    }
    const given = init?.body;
    if (given !== undefined && given !== null) {
      const isRead = this.#method === 'GET' || this.#method === 'HEAD';
      if (isRead && !forKernel) throw new TypeError('Request with GET/HEAD method cannot have body.');
      setBody(this, given);
    } else if (from !== undefined && hasBody(from)) {
      takeBody(this, from);
    }
  }
  static is(value) {
    return typeof value === 'object' && value !== null && #method in value;
  }
  get method() {
    return this.#method;
  }
  get url() {
    return this.#url;
  }
  get headers() {
    return this.#headers;
  }
  get redirect() {
    return this.#redirect;
  }
  get signal() {
    this.#signal ??= new (part('events').AbortController)().signal;
    return this.#signal;
  }
  get cache() {
    return this.#rest.cache ?? 'default';
  }
  get credentials() {
    return this.#rest.credentials ?? 'same-origin';
  }
  get destination() {
    return '';
  }
  get integrity() {
    return this.#rest.integrity ?? '';
  }
  get keepalive() {
    return Boolean(this.#rest.keepalive);
  }
  get mode() {
    return this.#rest.mode ?? 'cors';
  }
  get referrer() {
    return this.#rest.referrer ?? 'about:client';
  }
  get referrerPolicy() {
    return this.#rest.referrerPolicy ?? '';
  }
  get duplex() {
    return 'half';
  }
  clone() {
    const copy = new Request(this.#url, { method: this.#method, headers: this.#headers, redirect: this.#redirect, signal: this.#signal });
    copyBody(copy, this);
    return copy;
  }
}
const isRequest = Request.is;
delete Request.is;

class Response extends Body {
  #status = 200;
  #statusText = '';
  #headers;
  #url = '';
  #redirected = false;
  #type = 'default';
  constructor(body = null, init = undefined) {
    super();
    if (init?.status !== undefined) {
      const status = Math.trunc(Number(init.status));
      if (!(status >= 200 && status <= 599)) {
        throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.');
      }
      this.#status = status;
    }
    if (init?.statusText !== undefined) {
      const text = `${init.statusText}`;
      if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) throw new TypeError('Invalid statusText');
      this.#statusText = text;
    }
    this.#headers = new Headers(init?.headers);
    if (body !== null && body !== undefined) {
      if (NO_BODY_STATUS.includes(this.#status)) {
        throw new TypeError(`Response constructor: Invalid response status code ${this.#status}`);
      }
      setBody(this, body);
    }
  }
  /** The response that the kernel has answered with. */
  static received(answer) {
    const response = new Response();
    response.#status = answer.status;
    response.#statusText = answer.statusText;
    response.#headers = new Headers(answer.headers);
    response.#url = answer.url;
    response.#redirected = answer.redirected;
    response.#type = 'basic';
    const empty = NO_BODY_STATUS.includes(answer.status) && answer.body === '';
    if (!empty) setReceivedBody(response, answer.body, answer.bodyEncoding);
    return response;
  }
  static error() {
    const response = new Response();
    response.#type = 'error';
    response.#status = 0;
    return response;
  }
  static json(data, init = undefined) {
    const text = stringify(data);
    if (text === undefined) throw new TypeError('Value is not JSON serializable');
    const headers = new Headers(init?.headers);
    if (!headers.has('content-type')) headers.set('content-type', 'application/json');
    return new Response(text, { status: init?.status, statusText: init?.statusText, headers });
  }
  static redirect(url, status = 302) {
    const target = urlParts(`${url}`.toWellFormed());
    if (target === undefined) throw new TypeError(`Failed to parse URL from ${url}`);
    if (!REDIRECT_STATUS.includes(status)) throw new RangeError(`Invalid status code ${status}`);
    const response = new Response(null, { headers: { location: target.href } });
    response.#status = status;
    return response;
  }
  get status() {
    return this.#status;
  }
  get statusText() {
    return this.#statusText;
  }
  get ok() {
    return this.#status >= 200 && this.#status < 300;
  }
  get headers() {
    return this.#headers;
  }
  get url() {
    return this.#url;
  }
  get redirected() {
    return this.#redirected;
  }
  get type() {
    return this.#type;
  }
  clone() {
    const copy = new Response();
    copyBody(copy, this);
    copy.#status = this.#status;
    copy.#statusText = this.#statusText;
    copy.#headers = new Headers(this.#headers);
    copy.#url = this.#url;
    copy.#redirected = this.#redirected;
    copy.#type = this.#type;
    return copy;
  }
}
const receivedResponse = Response.received;
delete Response.received;

async function fetch(input, init = undefined) {
  if (arguments.length === 0) throw new TypeError("The 'fetch' function takes a URL or a Request.");
  let request;
  forKernel = true;
  try {
    request = new Request(input, init);
  } finally {
    forKernel = false;
  }
  const signal = init?.signal ?? (isRequest(input) ? input.signal : undefined);
  const message = { __proto__: null, url: request.url, method: request.method, headers: [...request.headers] };
  if (init?.redirect !== undefined || isRequest(input)) message.redirect = request.redirect;
  if (init?.secrets !== undefined) throw new TypeError("'secrets' is not an option of fetch; did you mean 'secret'?");
  if (init?.secret !== undefined && init.secret !== null) message.secret = `${init.secret}`;
  if (hasBody(request)) {
    const { text, bytes } = await wholeBody(request);
    message.body = text ?? host.base64Encode(bytes);
    message.bodyEncoding = text === undefined ? 'base64' : 'utf8';
  }
  if (signal?.aborted) throw signal.reason;
  return receivedResponse(await bridge('fetch', [message], signal));
}

for (const made of [Headers, Request, Response]) {
  defineProperty(made.prototype, Symbol.toStringTag, { __proto__: null, value: made.name, configurable: true });
}
return { __proto__: null, Headers, Request, Response, fetch };
