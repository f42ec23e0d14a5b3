// TextEncoder and TextDecoder: the work is done natively, the classes are thin.
const { defineProperty } = kit;

class TextEncoder {
  get encoding() {
    return 'utf-8';
  }
  encode(text = '') {
    return host.utf8Encode(`${text}`.toWellFormed());
  }
  encodeInto(text, target) {
    if (!(target instanceof Uint8Array)) throw new TypeError('The "dest" argument must be an instance of Uint8Array.');
    const [read, written] = host.utf8EncodeInto(`${text}`.toWellFormed(), target);
    return { read, written };
  }
}

/** A view of the bytes of any buffer source; the caller must not keep it. */
function bytesOf(source) {
  if (source instanceof Uint8Array) return source;
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  throw new TypeError('The argument must be an instance of ArrayBuffer or ArrayBufferView.');
}

const withCode = (error, code) => {
  error.code = code;
  return error;
};

class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  // Holds an unfinished character between the chunks of a stream.
  #stream = undefined;
  constructor(label = 'utf-8', options = undefined) {
    const encoding = host.encodingName(`${label}`.toWellFormed());
    if (encoding === undefined) {
      throw withCode(new RangeError(`The "${label}" encoding is not supported`), 'ERR_ENCODING_NOT_SUPPORTED');
    }
    this.#encoding = encoding;
    this.#fatal = Boolean(options?.fatal);
    this.#ignoreBOM = Boolean(options?.ignoreBOM);
  }
  get encoding() {
    return this.#encoding;
  }
  get fatal() {
    return this.#fatal;
  }
  get ignoreBOM() {
    return this.#ignoreBOM;
  }
  decode(input = undefined, options = undefined) {
    const bytes = input === undefined ? new Uint8Array(0) : bytesOf(input);
    const more = Boolean(options?.stream);
    let text;
    if (more || this.#stream !== undefined) {
      this.#stream ??= host.newDecoder(this.#encoding, this.#ignoreBOM);
      text = host.decodeChunk(this.#stream, bytes, this.#fatal, !more);
      if (!more || text === undefined) this.#stream = undefined;
    } else {
      text = host.decodeBytes(this.#encoding, bytes, this.#fatal, this.#ignoreBOM);
    }
    if (text === undefined) {
      const error = new TypeError(`The encoded data was not valid for encoding ${this.#encoding}`);
      throw withCode(error, 'ERR_ENCODING_INVALID_ENCODED_DATA');
    }
    return text;
  }
}
for (const made of [TextEncoder, TextDecoder]) {
  defineProperty(made.prototype, Symbol.toStringTag, { __proto__: null, value: made.name, configurable: true });
}
return { __proto__: null, TextEncoder, TextDecoder, bytesOf };
