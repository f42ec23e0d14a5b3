// WritableStream and TransformStream; `readable_stream.js` comes first.
let writableState;
let insideWritable = false;

function updateReady(s) {
  const full = s.state === 'writable' && !s.closing && s.mark - s.size <= 0;
  if (full && !s.full) s.ready = deferred();
  if (!full && s.full) s.ready.resolve(undefined);
  s.full = full;
}

function failWriting(s, reason) {
  if (s.state !== 'writable') return;
  s.state = 'errored';
  s.reason = reason;
  for (const { done } of s.queue.splice(0)) done.reject(reason);
  s.size = 0;
  if (!s.full) s.ready = deferred();
  s.full = false;
  s.ready.reject(reason);
  s.closed.reject(reason);
  s.stop.abort(reason);
}

/** Hands the chunks to the sink, one at a time. */
async function drain(s) {
  if (s.busy || !s.started) return;
  s.busy = true;
  while (s.queue.length > 0 && s.state === 'writable') {
    const entry = s.queue[0];
    try {
      if (entry.isClose) await s.sinkClose();
      else await s.sinkWrite(entry.chunk);
    } catch (error) {
      if (s.queue[0] === entry) s.queue.shift();
      entry.done.reject(error);
      failWriting(s, error);
      break;
    }
    if (s.state !== 'writable') {
      entry.done.resolve(undefined);
      break;
    }
    s.queue.shift();
    s.size -= entry.size;
    if (entry.isClose) {
      s.state = 'closed';
      s.closed.resolve(undefined);
    }
    updateReady(s);
    entry.done.resolve(undefined);
  }
  s.busy = false;
}

function writeTo(s, chunk) {
  if (s.state === 'errored') return Promise.reject(s.reason);
  if (s.state === 'closed' || s.closing) return Promise.reject(new TypeError('Invalid state: WritableStream is closed'));
  let size;
  try {
    size = Number(s.sizeOf(chunk));
  } catch (error) {
    failWriting(s, error);
    return Promise.reject(error);
  }
  const done = deferred();
  s.queue.push({ chunk, size, isClose: false, done });
  s.size += size;
  updateReady(s);
  drain(s);
  return done.promise;
}

function closeWriting(s) {
  if (s.state === 'errored') return Promise.reject(s.reason);
  if (s.state === 'closed' || s.closing) return Promise.reject(new TypeError('Invalid state: WritableStream is closed'));
  s.closing = true;
  const done = deferred();
  s.queue.push({ chunk: undefined, size: 0, isClose: true, done });
  updateReady(s);
  drain(s);
  return done.promise;
}

async function abortWriting(s, reason) {
  if (s.state !== 'writable') return;
  failWriting(s, reason);
  await s.sinkAbort(reason);
}

class WritableStreamDefaultController {
  #s;
  constructor(s) {
    if (!insideWritable) throw new TypeError('Illegal constructor');
    this.#s = s;
  }
  get signal() {
    return this.#s.stop.signal;
  }
  error(reason = undefined) {
    failWriting(this.#s, reason);
  }
}

class WritableStreamDefaultWriter {
  #s;
  constructor(stream) {
    const s = writableState(stream);
    if (s.locked) throw new TypeError('Invalid state: WritableStream is locked');
    s.locked = true;
    this.#s = s;
  }
  #attached() {
    if (this.#s === undefined) throw new TypeError('Invalid state: The writer is not attached to a stream');
    return this.#s;
  }
  get closed() {
    return this.#s === undefined ? Promise.reject(new TypeError('Invalid state: Writer has been released')) : this.#s.closed.promise;
  }
  get ready() {
    return this.#s === undefined ? Promise.reject(new TypeError('Invalid state: Writer has been released')) : this.#s.ready.promise;
  }
  get desiredSize() {
    const s = this.#attached();
    return s.state === 'errored' ? null : s.state === 'closed' ? 0 : s.mark - s.size;
  }
  async write(chunk = undefined) {
    return writeTo(this.#attached(), chunk);
  }
  async close() {
    return closeWriting(this.#attached());
  }
  async abort(reason = undefined) {
    return abortWriting(this.#attached(), reason);
  }
  releaseLock() {
    if (this.#s === undefined) return;
    this.#s.locked = false;
    this.#s = undefined;
  }
}

class WritableStream {
  #s;
  constructor(sink = {}, strategy = {}) {
    const { mark, size } = strategyOf(strategy, 1);
    const s = {
      __proto__: null, state: 'writable', reason: undefined, queue: [], size: 0, mark, sizeOf: (chunk) => size(chunk), locked: false,
      closing: false, started: false, busy: false, full: false, ready: deferred(), closed: deferred(),
      stop: new (part('events').AbortController)(), sinkWrite: undefined, sinkClose: undefined, sinkAbort: undefined,
    };
    this.#s = s;
    s.ready.resolve(undefined);
    insideWritable = true;
    const controller = new WritableStreamDefaultController(s);
    insideWritable = false;
    const { start, write, close, abort } = sink ?? {};
    s.sinkWrite = async (chunk) => write?.call(sink, chunk, controller);
    s.sinkClose = async () => close?.call(sink);
    s.sinkAbort = async (reason) => abort?.call(sink, reason);
    const begun = start?.call(sink, controller);
    updateReady(s);
    Promise.resolve(begun).then(
      () => {
        s.started = true;
        drain(s);
      },
      (error) => failWriting(s, error),
    );
  }
  static {
    writableState = (stream) => {
      if (typeof stream !== 'object' || stream === null || !(#s in stream)) throw new TypeError('The "stream" argument must be a WritableStream');
      return stream.#s;
    };
  }
  get locked() {
    return this.#s.locked;
  }
  getWriter() {
    return new WritableStreamDefaultWriter(this);
  }
  async close() {
    if (this.#s.locked) throw new TypeError('Invalid state: WritableStream is locked');
    return closeWriting(this.#s);
  }
  async abort(reason = undefined) {
    if (this.#s.locked) throw new TypeError('Invalid state: WritableStream is locked');
    return abortWriting(this.#s, reason);
  }
}

class TransformStreamDefaultController {
  #readable;
  #end;
  constructor(readable, end) {
    if (!insideWritable) throw new TypeError('Illegal constructor');
    this.#readable = readable;
    this.#end = end;
  }
  get desiredSize() {
    return this.#readable.desiredSize;
  }
  enqueue(chunk = undefined) {
    this.#readable.enqueue(chunk);
  }
  error(reason = undefined) {
    this.#end(reason, true);
  }
  terminate() {
    this.#readable.close();
    this.#end(new TypeError('Invalid state: TransformStream has been terminated'), false);
  }
}

class TransformStream {
  #readable;
  #writable;
  constructor(transformer = {}, writableStrategy = {}, readableStrategy = {}) {
    let inside;
    let outside;
    let wanted = deferred();
    const wants = () => {
      const s = stateOf(this.#readable);
      return s.state !== 'readable' || s.reads.length > 0 || desiredSize(s) > 0;
    };
    const { start, transform, flush, cancel } = transformer ?? {};
    this.#readable = new ReadableStream(
      {
        start(readable) {
          inside = readable;
        },
        pull() {
          wanted.resolve(undefined);
        },
        async cancel(reason) {
          wanted.resolve(undefined);
          outside.error(reason);
          await cancel?.call(transformer, reason);
        },
      },
      { highWaterMark: 0, ...readableStrategy },
    );
    const end = (reason, failed) => {
      if (failed) inside.error(reason);
      outside.error(reason);
      wanted.resolve(undefined);
    };
    insideWritable = true;
    const controller = new TransformStreamDefaultController(inside, end);
    insideWritable = false;
    const guarded = async (work) => {
      try {
        return await work();
      } catch (error) {
        inside.error(error);
        throw error;
      }
    };
    let begun;
    this.#writable = new WritableStream(
      {
        start(writable) {
          outside = writable;
          begun = start?.call(transformer, controller);
          return begun;
        },
        async write(chunk) {
          // A transform runs when its result is wanted, so that a slow reader holds the writer back.
          while (!wants()) {
            wanted = deferred();
            await wanted.promise;
          }
          await guarded(() => (transform === undefined ? controller.enqueue(chunk) : transform.call(transformer, chunk, controller)));
        },
        async close() {
          await guarded(() => flush?.call(transformer, controller));
          if (inside.desiredSize !== null) {
            try {
              inside.close();
            } catch {
              // Its transformer has terminated it.
            }
          }
        },
        async abort(reason) {
          inside.error(reason);
          await cancel?.call(transformer, reason);
        },
      },
      writableStrategy,
    );
  }
  get readable() {
    return this.#readable;
  }
  get writable() {
    return this.#writable;
  }
}

class CountQueuingStrategy {
  #mark;
  constructor(init) {
    this.#mark = Number(init.highWaterMark);
  }
  get highWaterMark() {
    return this.#mark;
  }
  get size() {
    return () => 1;
  }
}
class ByteLengthQueuingStrategy {
  #mark;
  constructor(init) {
    this.#mark = Number(init.highWaterMark);
  }
  get highWaterMark() {
    return this.#mark;
  }
  get size() {
    return (chunk) => chunk.byteLength;
  }
}

class TextEncoderStream {
  #stream;
  constructor() {
    // Half a surrogate pair at the end of a chunk waits for the other half.
    let half = '';
    this.#stream = new TransformStream({
      transform(chunk, controller) {
        let text = half + `${chunk}`;
        half = /[\ud800-\udbff]$/.exec(text)?.[0] ?? '';
        if (half !== '') text = text.slice(0, -1);
        if (text !== '') controller.enqueue(host.utf8Encode(text.toWellFormed()));
      },
      flush(controller) {
        if (half !== '') controller.enqueue(host.utf8Encode('\ufffd'));
      },
    });
  }
  get encoding() {
    return 'utf-8';
  }
  get readable() {
    return this.#stream.readable;
  }
  get writable() {
    return this.#stream.writable;
  }
}

class TextDecoderStream {
  #decoder;
  #stream;
  constructor(label = 'utf-8', options = undefined) {
    const decoder = new (part('encoding').TextDecoder)(label, options);
    this.#decoder = decoder;
    this.#stream = new TransformStream({
      transform(chunk, controller) {
        const text = decoder.decode(chunk, { stream: true });
        if (text !== '') controller.enqueue(text);
      },
      flush(controller) {
        const text = decoder.decode();
        if (text !== '') controller.enqueue(text);
      },
    });
  }
  get encoding() {
    return this.#decoder.encoding;
  }
  get fatal() {
    return this.#decoder.fatal;
  }
  get ignoreBOM() {
    return this.#decoder.ignoreBOM;
  }
  get readable() {
    return this.#stream.readable;
  }
  get writable() {
    return this.#stream.writable;
  }
}

const made = {
  __proto__: null, ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController, WritableStream,
  WritableStreamDefaultWriter, WritableStreamDefaultController, TransformStream, TransformStreamDefaultController,
  CountQueuingStrategy, ByteLengthQueuingStrategy, TextEncoderStream, TextDecoderStream,
};
for (const name in made) {
  defineProperty(made[name].prototype, Symbol.toStringTag, { __proto__: null, value: name, configurable: true });
}
made.streamOfBytes = streamOfBytes;
made.isDisturbed = isDisturbed;
return made;
