// Headers: names in lower case, sorted and joined when they are read.
const { bridge, defineProperty, parse, part, stringify } = kit;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const urlParts = (text) => {
  const parsed = host.urlParse(text, null);
  return parsed === undefined ? undefined : parse(parsed);
};

// While `fetch` makes its own Request: the kernel judges what is asked for, and its refusal is what a tool must see.
let forKernel = false;

function headerName(name) {
  const text = `${name}`.toWellFormed();
  // The kernel refuses what is not valid, with a code of its own.
  if (forKernel) return text.toLowerCase();
  if (!TOKEN.test(text)) throw new TypeError(`Headers: ${text} is an invalid header name.`);
  return text.toLowerCase();
}

function headerValue(value) {
  const text = `${value}`.toWellFormed().replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, '');
  if (forKernel) return text;
  if (/[\0\r\n]/.test(text) || /[^\0-\xff]/.test(text)) throw new TypeError(`Headers: ${text} is an invalid header value.`);
  return text;
}

class Headers {
  #pairs = [];
  constructor(init = undefined) {
    if (init === undefined) return;
    if (init === null || typeof init !== 'object') {
      throw new TypeError("Failed to construct 'Headers': the provided value is not of type '(record<ByteString, ByteString> or sequence<sequence<ByteString>>)'.");
    }
    const pairs = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
    for (const pair of pairs) {
      const [name, value, ...more] = pair;
      if (value === undefined && pair.length !== 2 || more.length > 0) throw new TypeError('Headers: expected name/value pairs.');
      this.append(name, value);
    }
  }
  append(name, value) {
    this.#pairs.push([headerName(name), headerValue(value)]);
  }
  get(name) {
    const key = headerName(name);
    const found = this.#pairs.filter((pair) => pair[0] === key);
    return found.length === 0 ? null : found.map((pair) => pair[1]).join(', ');
  }
  getSetCookie() {
    return this.#pairs.filter((pair) => pair[0] === 'set-cookie').map((pair) => pair[1]);
  }
  has(name) {
    const key = headerName(name);
    return this.#pairs.some((pair) => pair[0] === key);
  }
  set(name, value) {
    const [key, text] = [headerName(name), headerValue(value)];
    const at = this.#pairs.findIndex((pair) => pair[0] === key);
    if (at < 0) {
      this.#pairs.push([key, text]);
      return;
    }
    this.#pairs = this.#pairs.filter((pair, index) => pair[0] !== key || index === at);
    this.#pairs[at] = [key, text];
  }
  delete(name) {
    const key = headerName(name);
    this.#pairs = this.#pairs.filter((pair) => pair[0] !== key);
  }
  forEach(callback, self = undefined) {
    if (typeof callback !== 'function') throw new TypeError('Headers.forEach takes a function');
    for (const [name, value] of this) callback.call(self, value, name, this);
  }
  *entries() {
    const names = [...new Set(this.#pairs.map((pair) => pair[0]))].sort();
    for (const name of names) {
      // Cookies are the one kind of header whose values cannot be joined.
      if (name === 'set-cookie') for (const cookie of this.getSetCookie()) yield [name, cookie];
      else yield [name, this.get(name)];
    }
  }
  *keys() {
    for (const [name] of this.entries()) yield name;
  }
  *values() {
    for (const [, value] of this.entries()) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
}
