// URL and URLSearchParams: parsing and serializing are native.
const { defineProperty, parse, stringify } = kit;

const wellFormed = (value) => `${value}`.toWellFormed();

function pairOf(entry) {
  const pair = typeof entry?.[Symbol.iterator] === 'function' && typeof entry !== 'string' ? [...entry] : undefined;
  if (pair?.length !== 2) {
    const error = new TypeError('Each query pair must be an iterable [name, value] tuple');
    error.code = 'ERR_INVALID_TUPLE';
    throw error;
  }
  return [wellFormed(pair[0]), wellFormed(pair[1])];
}

class URLSearchParams {
  #pairs = [];
  #changed = () => {};
  constructor(init = '') {
    if ((typeof init === 'object' && init !== null) || typeof init === 'function') {
      const pairs = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
      this.#pairs = pairs.map(pairOf);
    } else {
      this.#pairs = parse(host.queryParse(wellFormed(init).replace(/^\?/, '')));
    }
  }
  static watch(params, changed) {
    params.#changed = changed;
  }
  static refill(params, search) {
    params.#pairs = parse(host.queryParse(search.replace(/^\?/, '')));
  }
  append(name, value) {
    this.#pairs.push([wellFormed(name), wellFormed(value)]);
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
    this.#pairs[at] = [wellFormed(name), wellFormed(value)];
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
    return host.querySerialize(stringify(this.#pairs));
  }
}
const { watch: watchSearchParams, refill: refillSearchParams } = URLSearchParams;
delete URLSearchParams.watch;
delete URLSearchParams.refill;
class URL {
  #parts;
  #searchParams;
  constructor(url, base = undefined) {
    const parsed = host.urlParse(wellFormed(url), base === undefined ? null : wellFormed(base));
    if (parsed === undefined) {
      const error = new TypeError('Invalid URL');
      error.code = 'ERR_INVALID_URL';
      error.input = wellFormed(url);
      if (base !== undefined) error.base = wellFormed(base);
      throw error;
    }
    this.#parts = parse(parsed);
  }
  #set(part, value) {
    const changed = host.urlSet(this.#parts.href, part, wellFormed(value));
    if (changed === undefined) {
      if (part !== 'href') return;
      const error = new TypeError('Invalid URL');
      error.code = 'ERR_INVALID_URL';
      throw error;
    }
    this.#parts = parse(changed);
    // The object that a tool may hold follows the URL.
    if (this.#searchParams !== undefined) refillSearchParams(this.#searchParams, this.#parts.search);
  }
  static canParse(url, base = undefined) {
    return host.urlParse(wellFormed(url), base === undefined ? null : wellFormed(base)) !== undefined;
  }
  static parse(url, base = undefined) {
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
for (const made of [URL, URLSearchParams]) {
  defineProperty(made.prototype, Symbol.toStringTag, { __proto__: null, value: made.name, configurable: true });
}
return { __proto__: null, URL, URLSearchParams };
