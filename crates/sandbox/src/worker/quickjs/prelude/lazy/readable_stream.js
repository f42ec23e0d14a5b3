// ReadableStream with its default reader. Byte streams are read like all others; there is no BYOB reader.
const { defineProperty, part } = kit;
const ignore = () => {};
/** The largest chunk of a stream whose bytes are there already. */
const CHUNK_BYTES = 65536;

function strategyOf(strategy, fallback) {
  const mark = strategy?.highWaterMark === undefined ? fallback : Number(strategy.highWaterMark);
  if (Number.isNaN(mark) || mark < 0) throw new RangeError('Invalid highWaterMark');
  const { size } = strategy ?? {};
  if (size !== undefined && typeof size !== 'function') throw new TypeError("The 'strategy.size' must be a function");
  return { mark, size: size ?? (() => 1) };
}

/** A promise with its own switches, whose rejection is never unhandled. */
function deferred() {
  const made = Promise.withResolvers();
  made.promise.catch(ignore);
  return made;
}

const desiredSize = (s) => (s.state === 'errored' ? null : s.state === 'closed' ? 0 : s.mark - s.size);

function finishReading(s) {
  s.state = 'closed';
  s.queue = [];
  s.size = 0;
  for (const read of s.reads.splice(0)) read.resolve({ value: undefined, done: true });
  s.reader?.closed.resolve(undefined);
}

function failReading(s, reason) {
  if (s.state !== 'readable') return;
  s.state = 'errored';
  s.reason = reason;
  s.queue = [];
  s.size = 0;
  for (const read of s.reads.splice(0)) read.reject(reason);
  s.reader?.closed.reject(reason);
}

function enqueue(s, value) {
  if (s.reads.length > 0) {
    s.reads.shift().resolve({ value, done: false });
  } else {
    let size;
    try {
      size = Number(s.sizeOf(value));
      if (Number.isNaN(size) || size < 0 || size === Infinity) throw new RangeError('The size of a chunk is not valid');
    } catch (error) {
      failReading(s, error);
      throw error;
    }
    s.queue.push({ value, size });
    s.size += size;
  }
  pullIfNeeded(s);
}

function pullIfNeeded(s) {
  if (s.state !== 'readable' || s.closing || !s.started) return;
  if (s.reads.length === 0 && desiredSize(s) <= 0) return;
  if (s.pulling) {
    s.pullAgain = true;
    return;
  }
  s.pulling = true;
  s.pull().then(
    () => {
      s.pulling = false;
      if (s.pullAgain) {
        s.pullAgain = false;
        pullIfNeeded(s);
      }
    },
    (error) => failReading(s, error),
  );
}

function readFrom(s) {
  s.disturbed = true;
  if (s.state === 'errored') return Promise.reject(s.reason);
  if (s.queue.length > 0) {
    const { value, size } = s.queue.shift();
    s.size -= size;
    if (s.closing && s.queue.length === 0) finishReading(s);
    else pullIfNeeded(s);
    return Promise.resolve({ value, done: false });
  }
  if (s.state === 'closed') return Promise.resolve({ value: undefined, done: true });
  const read = Promise.withResolvers();
  s.reads.push(read);
  pullIfNeeded(s);
  return read.promise;
}

async function cancelStream(s, reason) {
  s.disturbed = true;
  if (s.state === 'closed') return;
  if (s.state === 'errored') throw s.reason;
  finishReading(s);
  await s.cancel(reason);
}

let stateOf;
let insideReadable = false;

class ReadableStreamDefaultController {
  #s;
  constructor(s) {
    if (!insideReadable) throw new TypeError('Illegal constructor');
    this.#s = s;
  }
  get desiredSize() {
    return desiredSize(this.#s);
  }
  // A byte stream's source may ask for it; without BYOB readers there never is one.
  get byobRequest() {
    return null;
  }
  enqueue(chunk = undefined) {
    const s = this.#s;
    if (s.state !== 'readable' || s.closing) throw new TypeError('Invalid state: Controller is already closed');
    if (s.bytes) {
      if (!ArrayBuffer.isView(chunk)) throw new TypeError('The chunk of a byte stream must be an ArrayBufferView');
      enqueue(s, part('encoding').bytesOf(chunk));
    } else {
      enqueue(s, chunk);
    }
  }
  close() {
    const s = this.#s;
    if (s.state !== 'readable' || s.closing) throw new TypeError('Invalid state: Controller is already closed');
    s.closing = true;
    if (s.queue.length === 0) finishReading(s);
  }
  error(reason = undefined) {
    failReading(this.#s, reason);
  }
}

class ReadableStreamDefaultReader {
  #s;
  #closed = deferred();
  constructor(stream) {
    const s = stateOf(stream);
    if (s.reader !== undefined) throw new TypeError('Invalid state: ReadableStream is locked');
    this.#s = s;
    s.reader = { closed: this.#closed };
    if (s.state === 'closed') this.#closed.resolve(undefined);
    if (s.state === 'errored') this.#closed.reject(s.reason);
  }
  get closed() {
    return this.#closed.promise;
  }
  read() {
    if (this.#s === undefined) return Promise.reject(new TypeError('Invalid state: The reader is not attached to a stream'));
    return readFrom(this.#s);
  }
  cancel(reason = undefined) {
    if (this.#s === undefined) return Promise.reject(new TypeError('Invalid state: The reader is not attached to a stream'));
    return cancelStream(this.#s, reason);
  }
  releaseLock() {
    const s = this.#s;
    if (s === undefined) return;
    this.#s = undefined;
    const released = new TypeError('Invalid state: Releasing reader');
    for (const read of s.reads.splice(0)) read.reject(released);
    s.reader = undefined;
    if (s.state === 'readable') this.#closed.reject(released);
    else {
      this.#closed = deferred();
      this.#closed.reject(released);
    }
  }
}

class ReadableStream {
  #s;
  constructor(source = {}, strategy = {}) {
    if (source === null || typeof source !== 'object') throw new TypeError('The "source" argument must be an object');
    const bytes = source.type === 'bytes';
    if (source.type !== undefined && !bytes) throw new TypeError(`The argument 'source.type' is invalid: ${source.type}`);
    const { mark, size } = strategyOf(strategy, bytes ? 0 : 1);
    const s = {
      __proto__: null, state: 'readable', reason: undefined, queue: [], size: 0, reads: [], reader: undefined, mark,
      sizeOf: bytes ? (chunk) => chunk.byteLength : (chunk) => size(chunk), bytes, started: false, closing: false, pulling: false,
      pullAgain: false, disturbed: false, pull: undefined, cancel: undefined,
    };
    this.#s = s;
    insideReadable = true;
    const controller = new ReadableStreamDefaultController(s);
    insideReadable = false;
    const { start, pull, cancel } = source;
    s.pull = async () => {
      await pull?.call(source, controller);
    };
    s.cancel = async (reason) => {
      await cancel?.call(source, reason);
    };
    const begun = start?.call(source, controller);
    Promise.resolve(begun).then(
      () => {
        s.started = true;
        pullIfNeeded(s);
      },
      (error) => failReading(s, error),
    );
  }
  static {
    stateOf = (stream) => {
      if (typeof stream !== 'object' || stream === null || !(#s in stream)) throw new TypeError('The "stream" argument must be a ReadableStream');
      return stream.#s;
    };
  }
  static from(iterable) {
    const method = iterable?.[Symbol.asyncIterator] ?? iterable?.[Symbol.iterator];
    if (typeof method !== 'function') throw new TypeError(`${iterable} is not iterable`);
    const iterator = method.call(iterable);
    return new ReadableStream(
      {
        async pull(controller) {
          const { value, done } = await iterator.next();
          if (done) controller.close();
          else controller.enqueue(await value);
        },
        async cancel(reason) {
          await iterator.return?.(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }
  get locked() {
    return this.#s.reader !== undefined;
  }
  getReader(options = undefined) {
    if (options?.mode !== undefined) {
      throw new TypeError(options.mode === 'byob' ? 'BYOB readers are not available; use getReader()' : `Invalid mode: ${options.mode}`);
    }
    return new ReadableStreamDefaultReader(this);
  }
  cancel(reason = undefined) {
    if (this.locked) return Promise.reject(new TypeError('Invalid state: ReadableStream is locked'));
    return cancelStream(this.#s, reason);
  }
  tee() {
    const reader = this.getReader();
    const branches = [];
    let reading = false;
    const canceled = [false, false];
    const reasons = [undefined, undefined];
    const finished = deferred();
    const pull = () => {
      if (reading) return;
      reading = true;
      reader.read().then(
        ({ value, done }) => {
          reading = false;
          for (const at of [0, 1]) {
            if (canceled[at]) continue;
            if (done) branches[at].close();
            else branches[at].enqueue(value);
          }
          if (done) finished.resolve(undefined);
        },
        (error) => {
          for (const branch of branches) branch.error(error);
          finished.resolve(undefined);
        },
      );
    };
    const branch = (at) =>
      new ReadableStream({
        start(controller) {
          branches[at] = controller;
        },
        pull,
        cancel(reason) {
          canceled[at] = true;
          reasons[at] = reason;
          if (canceled[0] && canceled[1]) reader.cancel([...reasons]).then(finished.resolve, finished.reject);
          return finished.promise;
        },
      }, { highWaterMark: 0 });
    return [branch(0), branch(1)];
  }
  async pipeTo(destination, options = undefined) {
    const { preventClose, preventAbort, preventCancel, signal } = options ?? {};
    const reader = this.getReader();
    const writer = destination.getWriter();
    const stop = signal === undefined ? undefined : deferred();
    const onAbort = () => stop.reject(signal.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort);
    const unless = (promise) => (stop === undefined ? promise : Promise.race([promise, stop.promise]));
    try {
      for (;;) {
        await unless(writer.ready);
        let chunk;
        try {
          chunk = await unless(reader.read());
        } catch (error) {
          if (!preventAbort) await writer.abort(error).catch(ignore);
          throw error;
        }
        if (chunk.done) break;
        writer.write(chunk.value).catch(ignore);
      }
      if (!preventClose) await writer.close();
    } catch (error) {
      if (!preventCancel) await reader.cancel(error).catch(ignore);
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      reader.releaseLock();
      writer.releaseLock();
    }
  }
  pipeThrough(transform, options = undefined) {
    if (typeof transform?.readable !== 'object' || typeof transform?.writable !== 'object') {
      throw new TypeError('The "transform" argument must have a readable and a writable');
    }
    this.pipeTo(transform.writable, options).catch(ignore);
    return transform.readable;
  }
  async *values(options = undefined) {
    const reader = this.getReader();
    let finished = false;
    try {
      for (;;) {
        let chunk;
        try {
          chunk = await reader.read();
        } catch (error) {
          finished = true;
          throw error;
        }
        if (chunk.done) {
          finished = true;
          return;
        }
        yield chunk.value;
      }
    } finally {
      if (!finished && !options?.preventCancel) await reader.cancel();
      reader.releaseLock();
    }
  }
  [Symbol.asyncIterator](options = undefined) {
    return this.values(options);
  }
}

const isDisturbed = (stream) => stateOf(stream).disturbed;

/** A stream of bytes that are there already. */
function streamOfBytes(bytes) {
  let left = bytes;
  return new ReadableStream({
    type: 'bytes',
    pull(controller) {
      if (left.length > 0) controller.enqueue(left.subarray(0, CHUNK_BYTES));
      left = left.subarray(CHUNK_BYTES);
      if (left.length === 0) controller.close();
    },
  });
}

