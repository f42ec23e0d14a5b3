// Blob, File, FormData, and the text form of a multipart body.
const { currentTime, defineProperty, part, randomBytes } = kit;
const utf8 = (text) => host.utf8Encode(text.toWellFormed());
const textOfUtf8 = (bytes) => host.decodeBytes('utf-8', bytes, false, false);

function joined(chunks) {
  let length = 0;
  for (const chunk of chunks) length += chunk.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

const mimeType = (type) => {
  const text = `${type}`;
  return /^[\x20-\x7e]*$/.test(text) ? text.toLowerCase() : '';
};

class Blob {
  #bytes;
  #type;
  constructor(parts = [], options = undefined) {
    if (typeof parts !== 'object' || parts === null || typeof parts[Symbol.iterator] !== 'function') {
      throw new TypeError('The "sources" argument must be a sequence');
    }
    const native = options?.endings === 'native';
    const chunks = [];
    for (const item of parts) {
      if (typeof item === 'object' && item !== null && #bytes in item) chunks.push(item.#bytes);
      else if (ArrayBuffer.isView(item) || item instanceof ArrayBuffer) chunks.push(part('encoding').bytesOf(item));
      else chunks.push(utf8(native ? `${item}`.replace(/\r\n?/g, '\n') : `${item}`));
    }
    this.#bytes = joined(chunks);
    this.#type = options?.type === undefined ? '' : mimeType(options.type);
  }
  /** The bytes themselves, for other parts of the prelude; they must not be changed. */
  static bytesOf(blob) {
    return blob.#bytes;
  }
  static isBlob(value) {
    return typeof value === 'object' && value !== null && #bytes in value;
  }
  get size() {
    return this.#bytes.length;
  }
  get type() {
    return this.#type;
  }
  slice(start = 0, end = this.#bytes.length, type = '') {
    const blob = new Blob([], { type });
    blob.#bytes = this.#bytes.slice(start, end);
    return blob;
  }
  async arrayBuffer() {
    return this.#bytes.slice().buffer;
  }
  async bytes() {
    return this.#bytes.slice();
  }
  async text() {
    return textOfUtf8(this.#bytes);
  }
  stream() {
    return part('streams').streamOfBytes(this.#bytes.slice());
  }
}
const { bytesOf: bytesOfBlob, isBlob } = Blob;
delete Blob.bytesOf;
delete Blob.isBlob;

class File extends Blob {
  #name;
  #lastModified;
  constructor(parts, name, options = undefined) {
    if (arguments.length < 2) throw new TypeError('The "fileName" argument must be specified');
    super(parts, options);
    this.#name = `${name}`.toWellFormed();
    this.#lastModified = options?.lastModified === undefined ? currentTime() : Math.trunc(Number(options.lastModified)) || 0;
  }
  get name() {
    return this.#name;
  }
  get lastModified() {
    return this.#lastModified;
  }
  get webkitRelativePath() {
    return '';
  }
}

class FormData {
  #entries = [];
  constructor(form = undefined) {
    if (form !== undefined) throw new TypeError('FormData takes no form: there is no document');
  }
  #entry(name, value, filename) {
    if (!isBlob(value)) return [`${name}`.toWellFormed(), `${value}`.toWellFormed()];
    const file = value instanceof File && filename === undefined ? value : new File([value], filename ?? 'blob', { type: value.type });
    return [`${name}`.toWellFormed(), file];
  }
  append(name, value, filename = undefined) {
    if (arguments.length < 2) throw new TypeError('FormData.append takes a name and a value');
    this.#entries.push(this.#entry(name, value, filename));
  }
  set(name, value, filename = undefined) {
    if (arguments.length < 2) throw new TypeError('FormData.set takes a name and a value');
    const entry = this.#entry(name, value, filename);
    const at = this.#entries.findIndex(([key]) => key === entry[0]);
    if (at < 0) {
      this.#entries.push(entry);
      return;
    }
    this.#entries = this.#entries.filter(([key], index) => key !== entry[0] || index === at);
    this.#entries[at] = entry;
  }
  delete(name) {
    this.#entries = this.#entries.filter(([key]) => key !== `${name}`);
  }
  get(name) {
    return this.#entries.find(([key]) => key === `${name}`)?.[1] ?? null;
  }
  getAll(name) {
    return this.#entries.filter(([key]) => key === `${name}`).map(([, value]) => value);
  }
  has(name) {
    return this.#entries.some(([key]) => key === `${name}`);
  }
  forEach(callback, self = undefined) {
    for (const [name, value] of this.#entries) callback.call(self, value, name, this);
  }
  *entries() {
    for (const [name, value] of this.#entries) yield [name, value];
  }
  *keys() {
    for (const [name] of this.#entries) yield name;
  }
  *values() {
    for (const [, value] of this.#entries) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
}

const escapeName = (name) => name.replace(/\r\n?|\n/g, '%0D%0A').replace(/"/g, '%22');

/** A multipart body and its content type. */
function encodeMultipart(form) {
  const random = randomBytes(12);
  let boundary = '----formdata-tgp-';
  for (const byte of random) boundary += byte.toString(16).padStart(2, '0');
  const chunks = [];
  for (const [name, value] of form) {
    let head = `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(name)}"`;
    if (typeof value === 'string') {
      chunks.push(utf8(`${head}\r\n\r\n${value.replace(/\r\n?|\n/g, '\r\n')}\r\n`));
    } else {
      head += `; filename="${escapeName(value.name)}"\r\nContent-Type: ${value.type || 'application/octet-stream'}\r\n\r\n`;
      chunks.push(utf8(head), bytesOfBlob(value), utf8('\r\n'));
    }
  }
  chunks.push(utf8(`--${boundary}--\r\n`));
  return { bytes: joined(chunks), type: `multipart/form-data; boundary=${boundary}` };
}

function indexOfBytes(bytes, wanted, from) {
  for (let at = bytes.indexOf(wanted[0], from); at >= 0; at = bytes.indexOf(wanted[0], at + 1)) {
    let same = 1;
    while (same < wanted.length && bytes[at + same] === wanted[same]) same += 1;
    if (same === wanted.length) return at;
  }
  return -1;
}

const unescapeName = (name) => name.replace(/%0D%0A/gi, '\r\n').replace(/%22/g, '"');

function decodeMultipart(bytes, boundary) {
  const broken = () => new TypeError('Failed to parse body as FormData.');
  const form = new FormData();
  const delimiter = utf8(`--${boundary}`);
  let at = indexOfBytes(bytes, delimiter, 0);
  while (at >= 0) {
    at += delimiter.length;
    if (bytes[at] === 0x2d && bytes[at + 1] === 0x2d) return form;
    const headEnd = indexOfBytes(bytes, utf8('\r\n\r\n'), at);
    const next = headEnd < 0 ? -1 : indexOfBytes(bytes, utf8(`\r\n--${boundary}`), headEnd + 2);
    if (next < 0) throw broken();
    const head = textOfUtf8(bytes.subarray(at, headEnd));
    const content = bytes.slice(headEnd + 4, Math.max(next, headEnd + 4));
    const name = /\bname="([^"]*)"/i.exec(head.replace(/filename\*?="[^"]*"/i, ''))?.[1];
    if (name === undefined) throw broken();
    const filename = /\bfilename="([^"]*)"/i.exec(head)?.[1];
    if (filename === undefined) {
      form.append(unescapeName(name), textOfUtf8(content));
    } else {
      const type = /^content-type:[ \t]*(.*)$/im.exec(head)?.[1]?.trim() ?? 'text/plain';
      form.append(unescapeName(name), new File([content], unescapeName(filename), { type }));
    }
    at = next + 2;
  }
  throw broken();
}

for (const made of [Blob, File, FormData]) {
  defineProperty(made.prototype, Symbol.toStringTag, { __proto__: null, value: made.name, configurable: true });
}
return { __proto__: null, Blob, File, FormData, isBlob, bytesOfBlob, encodeMultipart, decodeMultipart, joined };
