// Buffer: Node's byte arrays. Text is converted natively; `buffer_numbers.js` adds the readers and writers of numbers.
const { apply, defineProperty } = kit;
/** The longest Buffer; the heap of a run ends far below it. */
const MAX_LENGTH = 2 ** 31 - 1;

const withCode = (error, code) => {
  error.code = code;
  return error;
};
const kindOf = (value) => {
  if (value === null || value === undefined) return ` Received ${value}`;
  if (typeof value === 'function') return ` Received function ${value.name}`;
  if (typeof value === 'object') return value.constructor?.name ? ` Received an instance of ${value.constructor.name}` : ' Received [Object: null prototype] {}';
  const shown = typeof value === 'string' ? `'${value.length > 28 ? `${value.slice(0, 25)}...` : value}'` : typeof value === 'bigint' ? `${value}n` : String(value);
  return ` Received type ${typeof value} (${shown})`;
};
const wrongType = (name, expected, value) =>
  withCode(new TypeError(`The ${name} must be ${expected}.${kindOf(value)}`), 'ERR_INVALID_ARG_TYPE');

/** One of the native names of an encoding; undefined for what is not one. */
function encodingOf(name) {
  switch (`${name}`.toLowerCase()) {
    case 'utf8': case 'utf-8': return 'utf8';
    case 'hex': return 'hex';
    case 'base64': return 'base64';
    case 'base64url': return 'base64url';
    case 'latin1': case 'binary': return 'latin1';
    case 'ascii': return 'ascii';
    case 'ucs2': case 'ucs-2': case 'utf16le': case 'utf-16le': return 'utf16le';
    default: return undefined;
  }
}

function knownEncoding(name) {
  if (name === undefined || name === null || name === '') return 'utf8';
  const encoding = encodingOf(name);
  if (encoding === undefined) throw withCode(new TypeError(`Unknown encoding: ${name}`), 'ERR_UNKNOWN_ENCODING');
  return encoding;
}

function bytesOfText(text, encoding) {
  // Text becomes bytes by the same rule in both, only reading differs.
  const native = encoding === 'ascii' ? 'latin1' : encoding === 'base64url' ? 'base64' : encoding;
  return host.bufferBytes(text.toWellFormed(), native);
}

function sizeOf(value) {
  if (typeof value !== 'number') throw wrongType('"size" argument', 'of type number', value);
  if (!(value >= 0 && value <= MAX_LENGTH)) {
    const error = new RangeError(`The value of "size" is out of range. It must be >= 0 && <= ${MAX_LENGTH}. Received ${value}`);
    throw withCode(error, 'ERR_OUT_OF_RANGE');
  }
  return Math.trunc(value);
}

const isBytes = (value) => value instanceof Uint8Array;

/** Any bytes or text as bytes to look for or to compare with. */
function needleOf(value, encoding) {
  if (typeof value === 'string') return bytesOfText(value, knownEncoding(encoding));
  if (isBytes(value)) return value;
  throw wrongType('"value" argument', 'one of type number or string or an instance of Buffer or Uint8Array', value);
}

function indexOfBytes(bytes, needle, from, step) {
  for (let at = from; at >= 0 && at + needle.length <= bytes.length; at += step) {
    let same = 0;
    while (same < needle.length && bytes[at + same] === needle[same]) same += 1;
    if (same === needle.length) return at;
  }
  return -1;
}

function search(buffer, value, from, encoding, forward) {
  if (typeof from === 'string') return search(buffer, value, undefined, from, forward);
  const needle = typeof value === 'number' ? [Math.trunc(value) & 255] : needleOf(value, encoding);
  let start = Number(from);
  if (Number.isNaN(start)) start = forward ? 0 : buffer.length;
  start = Math.trunc(start);
  if (start < 0) start = forward ? Math.max(0, buffer.length + start) : buffer.length + start;
  if (needle.length === 0) return Math.min(start, buffer.length);
  if (!forward) start = Math.min(start, buffer.length - needle.length);
  return indexOfBytes(buffer, needle, start, forward ? 1 : -1);
}

function compareBytes(left, right) {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    if (left[at] !== right[at]) return left[at] < right[at] ? -1 : 1;
  }
  return Math.sign(left.length - right.length);
}

class BufferBytes extends Uint8Array {
  // Results of `map`, `slice` and `subarray` are Buffers too.
  static get [Symbol.species]() {
    return Buffer;
  }
  toString(encoding = undefined, start = 0, end = this.length) {
    const from = Math.max(0, Math.trunc(Number(start)) || 0);
    const to = Math.min(this.length, Math.trunc(Number(end)) || 0);
    if (from >= to) return '';
    const whole = from === 0 && to === this.length;
    return host.bufferText(whole ? this : new Uint8Array(this.buffer, this.byteOffset + from, to - from), knownEncoding(encoding));
  }
  toLocaleString(encoding = undefined, start = undefined, end = undefined) {
    return this.toString(encoding, start, end);
  }
  toJSON() {
    return { type: 'Buffer', data: [...this] };
  }
  inspect() {
    return `<Buffer${[...this.subarray(0, 50)].map((byte) => ` ${byte.toString(16).padStart(2, '0')}`).join('')}${this.length > 50 ? ` ... ${this.length - 50} more byte${this.length > 51 ? 's' : ''}` : ''}>`;
  }
  equals(other) {
    if (!isBytes(other)) throw wrongType('"otherBuffer" argument', 'an instance of Buffer or Uint8Array', other);
    return compareBytes(this, other) === 0;
  }
  compare(target, targetStart = 0, targetEnd = target.length, sourceStart = 0, sourceEnd = this.length) {
    if (!isBytes(target)) throw wrongType('"target" argument', 'an instance of Buffer or Uint8Array', target);
    return compareBytes(this.subarray(sourceStart, sourceEnd), apply(Uint8Array.prototype.subarray, target, [targetStart, targetEnd]));
  }
  indexOf(value, from = undefined, encoding = undefined) {
    return search(this, value, from, encoding, true);
  }
  lastIndexOf(value, from = undefined, encoding = undefined) {
    return search(this, value, from, encoding, false);
  }
  includes(value, from = undefined, encoding = undefined) {
    return this.indexOf(value, from, encoding) >= 0;
  }
  // Unlike a typed array's, a Buffer's slice shares its memory.
  slice(start = undefined, end = undefined) {
    return this.subarray(start, end);
  }
  copy(target, targetStart = 0, sourceStart = 0, sourceEnd = this.length) {
    if (!isBytes(target)) throw wrongType('"target" argument', 'an instance of Buffer or Uint8Array', target);
    const room = Math.max(0, target.length - targetStart);
    const source = this.subarray(sourceStart, Math.min(sourceEnd, sourceStart + room));
    apply(Uint8Array.prototype.set, target, [source, targetStart]);
    return source.length;
  }
  fill(value, offset = undefined, end = undefined, encoding = undefined) {
    if (typeof offset === 'string') return this.fill(value, undefined, undefined, offset);
    if (typeof end === 'string') return this.fill(value, offset, undefined, end);
    const from = offset === undefined ? 0 : Math.trunc(offset);
    const to = end === undefined ? this.length : Math.trunc(end);
    if (from < 0 || to > this.length) {
      throw withCode(new RangeError('The value of "offset" is out of range.'), 'ERR_OUT_OF_RANGE');
    }
    if (typeof value !== 'string' && !isBytes(value)) {
      apply(Uint8Array.prototype.fill, this, [Number(value) & 255, from, to]);
      return this;
    }
    const pattern = needleOf(value, encoding);
    if (pattern.length === 0) {
      if (typeof value === 'string' && value !== '') throw withCode(new TypeError(`The argument 'value' is invalid. Received '${value}'`), 'ERR_INVALID_ARG_VALUE');
      apply(Uint8Array.prototype.fill, this, [0, from, to]);
      return this;
    }
    for (let at = from; at < to; at += 1) this[at] = pattern[(at - from) % pattern.length];
    return this;
  }
  write(text, offset = undefined, length = undefined, encoding = undefined) {
    if (typeof text !== 'string') throw wrongType('"string" argument', 'of type string', text);
    if (typeof offset === 'string') return this.write(text, 0, undefined, offset);
    if (typeof length === 'string') return this.write(text, offset, undefined, length);
    const start = offset === undefined ? 0 : Math.trunc(offset);
    if (start < 0 || start > this.length) throw withCode(new RangeError('The value of "offset" is out of range.'), 'ERR_OUT_OF_RANGE');
    const room = Math.min(this.length - start, length === undefined ? this.length : Math.trunc(length));
    const kind = knownEncoding(encoding);
    let bytes = bytesOfText(text, kind);
    if (bytes.length > room) {
      let end = room;
      // A character that does not fit is left out whole.
      if (kind === 'utf8') while (end > 0 && (bytes[end] & 0xc0) === 0x80) end -= 1;
      if (kind === 'utf16le') end -= end % 2;
      bytes = bytes.subarray(0, end);
    }
    this.set(bytes, start);
    return bytes.length;
  }
  get parent() {
    return this.buffer;
  }
  get offset() {
    return this.byteOffset;
  }
  swap16() {
    return swapped(this, 2);
  }
  swap32() {
    return swapped(this, 4);
  }
  swap64() {
    return swapped(this, 8);
  }
}

function swapped(buffer, size) {
  if (buffer.length % size !== 0) {
    throw withCode(new RangeError(`Buffer size must be a multiple of ${size * 8}-bits`), 'ERR_INVALID_BUFFER_SIZE');
  }
  for (let at = 0; at < buffer.length; at += size) buffer.subarray(at, at + size).reverse();
  return buffer;
}

const ofBytes = (bytes) => new BufferBytes(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function Buffer(value, encodingOrOffset = undefined, length = undefined) {
  // `new Buffer(…)`, and a typed array's method that makes a result of the same kind.
  if (new.target !== undefined && value instanceof ArrayBuffer) return new BufferBytes(value, encodingOrOffset, length);
  if (typeof value === 'number') return new BufferBytes(sizeOf(value));
  return Buffer.from(value, encodingOrOffset, length);
}
defineProperty(Buffer, 'prototype', { __proto__: null, value: BufferBytes.prototype, writable: false });
defineProperty(BufferBytes.prototype, 'constructor', { __proto__: null, value: Buffer, writable: true, configurable: true });
Object.setPrototypeOf(Buffer, Uint8Array);

const statics = {
  from(value, encodingOrOffset = undefined, length = undefined) {
    if (typeof value === 'string') return ofBytes(bytesOfText(value, knownEncoding(encodingOrOffset)));
    if (typeof value === 'object' && value !== null) {
      if (value instanceof ArrayBuffer) return new BufferBytes(value, encodingOrOffset, length);
      if (isBytes(value)) return new BufferBytes(value);
      if (ArrayBuffer.isView(value)) return new BufferBytes(Array.from(value, (item) => Number(item) & 255));
      const primitive = typeof value.valueOf === 'function' ? value.valueOf() : undefined;
      if (primitive !== value && (typeof primitive === 'string' || (typeof primitive === 'object' && primitive !== null))) {
        return Buffer.from(primitive, encodingOrOffset, length);
      }
      if (value.type === 'Buffer' && Array.isArray(value.data)) return Buffer.from(value.data);
      if (typeof value.length === 'number') return new BufferBytes(Array.from(value, (item) => Number(item) & 255));
      if (typeof value[Symbol.toPrimitive] === 'function') return Buffer.from(value[Symbol.toPrimitive]('string'), encodingOrOffset);
    }
    throw wrongType('first argument', 'of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object', value);
  },
  of(...items) {
    return new BufferBytes(items.map((item) => Number(item) & 255));
  },
  alloc(size, fill = undefined, encoding = undefined) {
    const buffer = new BufferBytes(sizeOf(size));
    return fill === undefined || fill === 0 ? buffer : buffer.fill(fill, undefined, undefined, encoding);
  },
  allocUnsafe(size) {
    return new BufferBytes(sizeOf(size));
  },
  allocUnsafeSlow(size) {
    return new BufferBytes(sizeOf(size));
  },
  concat(list, totalLength = undefined) {
    if (!Array.isArray(list)) throw wrongType('"list" argument', 'an instance of Array', list);
    let length = 0;
    for (const [at, item] of list.entries()) {
      if (!isBytes(item)) throw wrongType(`"list[${at}]" argument`, 'an instance of Buffer or Uint8Array', item);
      length += item.length;
    }
    const total = totalLength === undefined ? length : sizeOf(totalLength);
    const buffer = new BufferBytes(total);
    let at = 0;
    for (const item of list) {
      if (at >= total) break;
      const chunk = at + item.length > total ? new Uint8Array(item.buffer, item.byteOffset, total - at) : item;
      buffer.set(chunk, at);
      at += chunk.length;
    }
    return buffer;
  },
  byteLength(value, encoding = undefined) {
    if (typeof value === 'string') {
      const kind = encodingOf(encoding ?? 'utf8') ?? 'utf8';
      if (kind === 'latin1' || kind === 'ascii') return value.length;
      if (kind === 'utf16le') return value.length * 2;
      if (kind === 'hex') return value.length >>> 1;
      return bytesOfText(value, kind).length;
    }
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
    throw wrongType('"string" argument', 'of type string or an instance of Buffer or ArrayBuffer', value);
  },
  compare(left, right) {
    if (!isBytes(left)) throw wrongType('"buf1" argument', 'an instance of Buffer or Uint8Array', left);
    if (!isBytes(right)) throw wrongType('"buf2" argument', 'an instance of Buffer or Uint8Array', right);
    return compareBytes(left, right);
  },
  isBuffer: (value) => value instanceof BufferBytes,
  isEncoding: (name) => typeof name === 'string' && encodingOf(name) !== undefined,
};
for (const name of Object.keys(statics)) {
  defineProperty(Buffer, name, { __proto__: null, value: statics[name], writable: true, configurable: true });
}
defineProperty(Buffer, 'poolSize', { __proto__: null, value: 8192, writable: true, configurable: true });
defineProperty(Buffer, Symbol.species, { __proto__: null, get: () => Buffer, configurable: true });
