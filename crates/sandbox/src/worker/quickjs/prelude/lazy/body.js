// The body that Request and Response share: text or bytes that are there already, or a stream.
const { URLSearchParams } = part('url');

class Body {
  // One of `text`, `bytes` and `stream`; null without a body.
  #content = null;
  #used = false;
  get body() {
    if (this.#content === null) return null;
    this.#content.stream ??= part('streams').streamOfBytes(bytesOfContent(this.#content));
    return this.#content.stream;
  }
  get bodyUsed() {
    return this.#used || (this.#content?.stream !== undefined && part('streams').isDisturbed(this.#content.stream));
  }
  static set(target, content) {
    target.#content = content;
  }
  static has(target) {
    return target.#content !== null;
  }
  static move(target, source) {
    if (source.bodyUsed) throw new TypeError('Cannot construct a Request with a Request object that has already been used.');
    target.#content = source.#content;
    source.#used = true;
  }
  static copy(target, source) {
    if (source.bodyUsed || source.#content?.stream?.locked) throw new TypeError('Response.clone: Body has already been consumed.');
    if (source.#content === null) return;
    if (source.#content.stream === undefined) {
      target.#content = { ...source.#content };
      return;
    }
    const [mine, other] = source.#content.stream.tee();
    source.#content = { stream: mine };
    target.#content = { stream: other };
  }
  /** Text or bytes of the whole body, which is used up by that. */
  static async consume(target) {
    if (target.bodyUsed || target.#content?.stream?.locked) throw new TypeError('Body is unusable: Body has already been read');
    const content = target.#content;
    if (content === null) return { text: '', bytes: undefined };
    target.#used = true;
    if (content.stream === undefined) return content;
    const chunks = [];
    for await (const chunk of content.stream) {
      if (!(chunk instanceof Uint8Array)) throw new TypeError('Received non-Uint8Array chunk');
      chunks.push(chunk);
    }
    return { text: undefined, bytes: part('blob').joined(chunks) };
  }
  async text() {
    const { text, bytes } = await wholeBody(this);
    if (text === undefined) return host.decodeBytes('utf-8', bytes, false, false);
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }
  async json() {
    return parse(await this.text());
  }
  async bytes() {
    return bytesOfContent(await wholeBody(this)).slice();
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  async blob() {
    const type = this.headers.get('content-type') ?? '';
    return new (part('blob').Blob)([bytesOfContent(await wholeBody(this))], { type });
  }
  async formData() {
    const type = this.headers.get('content-type') ?? '';
    const { decodeMultipart, FormData } = part('blob');
    const boundary = /^multipart\/form-data\b.*?;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(type);
    if (boundary !== null) return decodeMultipart(bytesOfContent(await wholeBody(this)), boundary[1] ?? boundary[2]);
    if (!/^application\/x-www-form-urlencoded\b/i.test(type)) {
      throw new TypeError('Content-Type was not one of "multipart/form-data" or "application/x-www-form-urlencoded".');
    }
    const form = new FormData();
    for (const [name, value] of new URLSearchParams(await this.text())) form.append(name, value);
    return form;
  }
}
const { set: setContent, has: hasBody, move: takeBody, copy: copyBody, consume: wholeBody } = Body;
for (const name of ['set', 'has', 'move', 'copy', 'consume']) delete Body[name];

function bytesOfContent({ text, bytes }) {
  return text === undefined ? bytes : host.utf8Encode(text);
}

/** Gives `target` the body that a tool has passed, and a content type where it has none. */
function setBody(target, given) {
  let type = null;
  let content;
  const isObject = typeof given === 'object' && given !== null;
  const { isBlob, bytesOfBlob, FormData, encodeMultipart } = isObject ? part('blob') : {};
  if (isObject && (ArrayBuffer.isView(given) || given instanceof ArrayBuffer)) {
    content = { text: undefined, bytes: part('encoding').bytesOf(given).slice() };
  } else if (isObject && isBlob(given)) {
    content = { text: undefined, bytes: bytesOfBlob(given) };
    type = given.type === '' ? null : given.type;
  } else if (isObject && given instanceof FormData) {
    const encoded = encodeMultipart(given);
    content = { text: undefined, bytes: encoded.bytes };
    type = encoded.type;
  } else if (isObject && given instanceof URLSearchParams) {
    content = { text: given.toString(), bytes: undefined };
    type = 'application/x-www-form-urlencoded;charset=UTF-8';
  } else if (isObject && (given instanceof part('streams').ReadableStream || typeof given[Symbol.asyncIterator] === 'function')) {
    const { ReadableStream, isDisturbed } = part('streams');
    const stream = given instanceof ReadableStream ? given : ReadableStream.from(given);
    if (stream.locked || isDisturbed(stream)) throw new TypeError('Response body object should not be disturbed or locked');
    content = { text: undefined, bytes: undefined, stream };
  } else {
    content = { text: `${given}`.toWellFormed(), bytes: undefined };
    type = 'text/plain;charset=UTF-8';
  }
  setContent(target, content);
  if (type !== null && !target.headers.has('content-type')) target.headers.set('content-type', type);
}

function setReceivedBody(target, body, encoding) {
  const content = encoding === 'base64' ? { text: undefined, bytes: host.base64Decode(body) } : { text: body, bytes: undefined };
  setContent(target, content);
}
