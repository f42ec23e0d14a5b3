// TextEncoder, TextDecoder, URL: the work is done natively, the classes are thin.
class TextEncoder {
  get encoding() {
    return 'utf-8';
  }
  encode(text = '') {
    return host.utf8Encode(String(text).toWellFormed());
  }
  encodeInto(text, target) {
    let read = 0;
    let written = 0;
    for (const character of String(text).toWellFormed()) {
      const bytes = host.utf8Encode(character);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      written += bytes.length;
      read += character.length;
    }
    return { read, written };
  }
}
install('TextEncoder', TextEncoder);

const UTF8_LABELS = ['utf-8', 'utf8', 'unicode-1-1-utf-8'];

class TextDecoder {
  #fatal;
  #ignoreBOM;
  #kept = new Uint8Array(0);
  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!UTF8_LABELS.includes(String(label).trim().toLowerCase())) {
      throw new RangeError(`TextDecoder knows utf-8 only, not '${label}'`);
    }
    this.#fatal = Boolean(fatal);
    this.#ignoreBOM = Boolean(ignoreBOM);
  }
  get encoding() {
    return 'utf-8';
  }
  get fatal() {
    return this.#fatal;
  }
  get ignoreBOM() {
    return this.#ignoreBOM;
  }
  decode(input = new Uint8Array(0), { stream = false } = {}) {
    const view = ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    const bytes = new Uint8Array(this.#kept.length + view.length);
    bytes.set(this.#kept);
    bytes.set(view, this.#kept.length);
    // An unfinished character at the end of a chunk waits for the next one.
    const held = stream ? host.utf8Tail(bytes) : 0;
    this.#kept = bytes.slice(bytes.length - held);
    const text = host.utf8Decode(bytes.subarray(0, bytes.length - held), this.#fatal);
    if (text === undefined) throw new TypeError('the bytes are not valid UTF-8');
    return !this.#ignoreBOM && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }
}
install('TextDecoder', TextDecoder);

class URLSearchParams {
  #pairs = [];
  #changed = () => {};
  constructor(init = '') {
    if (typeof init === 'object' && init !== null) {
      const pairs = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
      this.#pairs = pairs.map(([name, value]) => [String(name), String(value)]);
    } else {
      this.#pairs = parse(host.queryParse(String(init).replace(/^\?/, '').toWellFormed()));
    }
  }
  static watch(params, changed) {
    params.#changed = changed;
  }
  append(name, value) {
    this.#pairs.push([String(name), String(value)]);
    this.#changed();
  }
  delete(name, value) {
    this.#pairs = this.#pairs.filter(([key, item]) => key !== String(name) || (value !== undefined && item !== String(value)));
    this.#changed();
  }
  get(name) {
    return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null;
  }
  getAll(name) {
    return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value);
  }
  has(name, value) {
    return this.#pairs.some(([key, item]) => key === String(name) && (value === undefined || item === String(value)));
  }
  set(name, value) {
    const at = this.#pairs.findIndex(([key]) => key === String(name));
    if (at < 0) return this.append(name, value);
    this.#pairs = this.#pairs.filter(([key], index) => key !== String(name) || index === at);
    this.#pairs[at] = [String(name), String(value)];
    this.#changed();
  }
  sort() {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#changed();
  }
  forEach(callback, self) {
    for (const [name, value] of this.#pairs) callback.call(self, value, name, this);
  }
  get size() {
    return this.#pairs.length;
  }
  *entries() {
    yield* this.#pairs.map(([name, value]) => [name, value]);
  }
  *keys() {
    for (const [name] of this.#pairs) yield name;
  }
  *values() {
    for (const [, value] of this.#pairs) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
  toString() {
    return host.querySerialize(stringify(this.#pairs.map((pair) => pair.map((text) => text.toWellFormed()))));
  }
}
const watchSearchParams = URLSearchParams.watch;
delete URLSearchParams.watch;
install('URLSearchParams', URLSearchParams);

class URL {
  #parts;
  #searchParams;
  constructor(url, base) {
    const parsed = host.urlParse(String(url).toWellFormed(), base === undefined ? null : String(base).toWellFormed());
    if (parsed === undefined) throw new TypeError(`Invalid URL: ${url}`);
    this.#take(parsed);
  }
  #take(json) {
    this.#parts = parse(json);
    this.#searchParams = undefined;
  }
  #set(part, value) {
    const changed = host.urlSet(this.#parts.href, part, String(value).toWellFormed());
    if (changed !== undefined) this.#take(changed);
  }
  static canParse(url, base) {
    return host.urlParse(String(url).toWellFormed(), base === undefined ? null : String(base).toWellFormed()) !== undefined;
  }
  static parse(url, base) {
    return URL.canParse(url, base) ? new URL(url, base) : null;
  }
  get searchParams() {
    if (this.#searchParams === undefined) {
      const params = new URLSearchParams(this.#parts.search);
      watchSearchParams(params, () => {
        this.#parts = parse(host.urlSet(this.#parts.href, 'search', params.toString()));
      });
      this.#searchParams = params;
    }
    return this.#searchParams;
  }
  get origin() {
    return this.#parts.origin;
  }
  toString() {
    return this.#parts.href;
  }
  toJSON() {
    return this.#parts.href;
  }
  static {
    for (const part of ['href', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash']) {
      defineProperty(URL.prototype, part, {
        get() {
          return this.#parts[part];
        },
        set(value) {
          this.#set(part, value);
        },
        enumerable: true,
        configurable: true,
      });
    }
  }
}
install('URL', URL);
