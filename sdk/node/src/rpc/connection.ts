/** JSON-RPC 2.0 over two streams, in both directions, one message a line. */

import type { Readable, Writable } from 'node:stream';

import { errorFromRpc, errorToRpc, messageOf, TGPError } from '../errors.js';
import type { RequestId, RpcError } from '../protocol.gen.js';
import { LineSplitter, MAX_LINE_BYTES } from './lines.js';

/** Requests that the kernel works on at a time; it reads no further line beyond this. */
const MAX_OPEN_REQUESTS = 1_024;
/** Requests that wait for one of these to end. */
const MAX_WAITING_REQUESTS = 16_384;
/** Requests of the kernel that the application works on at a time. */
const MAX_INCOMING_REQUESTS = 1_024;
/** How much of a line that is not a message is shown. */
const SHOWN_CHARACTERS = 200;

const METHOD_NOT_FOUND = -32601;

/** Answers the requests of the other side. */
export interface RequestHandler {
  (method: string, params: unknown, signal: AbortSignal): Promise<unknown> | undefined;
}

export interface ConnectionEvents {
  onRequest: RequestHandler;
  onNotification(method: string, params: unknown): void;
  /** The other side has broken the protocol; the connection is closed. */
  onViolation(error: TGPError): void;
  /** Whether requests are open, so that the process has to stay alive. */
  onActivity(isActive: boolean): void;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Called with the id before the request is sent. */
  onSend?: (id: number) => void;
}

interface OpenRequest {
  method: string;
  resolve(result: unknown): void;
  reject(error: unknown): void;
  /** Removes the listener of the caller's signal. */
  release(): void;
}

interface WaitingRequest {
  start(): void;
  reject(error: unknown): void;
}

export class Connection {
  readonly #output: Writable;
  readonly #events: ConnectionEvents;
  readonly #splitter = new LineSplitter();
  readonly #open = new Map<number, OpenRequest>();
  readonly #waiting = new Set<WaitingRequest>();
  readonly #incoming = new Map<RequestId, AbortController>();
  #nextId = 1;
  #closed: TGPError | undefined;
  /** Requests that the end of the connection has failed. */
  #failed = 0;
  #hasReceived = false;

  constructor(input: Readable, output: Writable, events: ConnectionEvents) {
    this.#output = output;
    this.#events = events;
    input.on('data', (piece: Buffer) => this.#read(piece));
    // The end of the process is reported by the process; a broken pipe says nothing more.
    input.on('error', () => {});
    output.on('error', () => {});
  }

  /** Sends a request and waits for its result. An aborted signal rejects at once and cancels the request. */
  request(method: string, params: unknown, options: RequestOptions = {}): Promise<unknown> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) {
        return reject(this.#closed);
      }
      if (signal?.aborted) {
        return reject(signal.reason);
      }
      if (this.#open.size < MAX_OPEN_REQUESTS) {
        return this.#send(method, params, options, resolve, reject);
      }
      if (this.#waiting.size >= MAX_WAITING_REQUESTS) {
        return reject(new TGPError('EBUDGET', `more than ${MAX_WAITING_REQUESTS} calls wait for the kernel`));
      }
      const abort = (): void => {
        this.#waiting.delete(waiting);
        reject(signal?.reason);
      };
      const waiting: WaitingRequest = {
        start: () => {
          this.#waiting.delete(waiting);
          signal?.removeEventListener('abort', abort);
          this.#send(method, params, options, resolve, reject);
        },
        reject,
      };
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  notify(method: string, params: unknown): void {
    if (this.#closed === undefined) {
      this.#write({ jsonrpc: '2.0', method, params });
    }
  }

  /** Whether a message has come. */
  get hasReceived(): boolean {
    return this.#hasReceived;
  }

  /** Fails every request with this error, and tells callbacks that are running to stop. Returns how many have failed. */
  close(error: TGPError): number {
    if (this.#closed !== undefined) {
      return this.#failed;
    }
    this.#closed = error;
    this.#failed = this.#open.size + this.#waiting.size;
    for (const request of this.#open.values()) {
      request.release();
      request.reject(error);
    }
    for (const waiting of this.#waiting) {
      waiting.reject(error);
    }
    for (const controller of this.#incoming.values()) {
      controller.abort(error);
    }
    this.#open.clear();
    this.#waiting.clear();
    this.#incoming.clear();
    this.#events.onActivity(false);
    return this.#failed;
  }

  #send(
    method: string,
    params: unknown,
    { signal, onSend }: RequestOptions,
    resolve: (result: unknown) => void,
    reject: (error: unknown) => void,
  ): void {
    const id = this.#nextId;
    let line: string;
    try {
      line = encode({ jsonrpc: '2.0', id, method, params });
    } catch (error) {
      reject(error);
      return this.#startWaiting();
    }
    this.#nextId += 1;
    const cancel = (): void => {
      // The entry stays until the kernel has answered: it still works on the request.
      const request = this.#open.get(id);
      if (request !== undefined) {
        this.#open.set(id, { ...request, resolve() {}, reject() {}, release() {} });
        this.notify('cancel', { id });
        reject(signal?.reason);
      }
    };
    signal?.addEventListener('abort', cancel, { once: true });
    this.#open.set(id, { method, resolve, reject, release: () => signal?.removeEventListener('abort', cancel) });
    if (this.#open.size === 1) {
      this.#events.onActivity(true);
    }
    onSend?.(id);
    this.#output.write(line);
  }

  #write(message: object): void {
    this.#output.write(encode(message));
  }

  #read(piece: Buffer): void {
    if (this.#closed !== undefined) {
      return;
    }
    try {
      for (const line of this.#splitter.push(piece)) {
        this.#take(line);
      }
    } catch (error) {
      const violation =
        error instanceof TGPError
          ? error
          : new TGPError('EINTERNAL', `the kernel broke the protocol: ${messageOf(error)}`);
      this.close(violation);
      this.#events.onViolation(violation);
    }
  }

  #take(line: string): void {
    const message = parse(line);
    this.#hasReceived = true;
    const { id, method, params } = message;
    if (typeof method === 'string') {
      if (id === undefined) {
        return this.#takeNotification(method, params);
      }
      void this.#answer(id, method, params);
      return;
    }
    if (typeof id !== 'number') {
      throw notAMessage(line);
    }
    const request = this.#open.get(id);
    if (request === undefined) {
      // An answer to a question that was never asked changes nothing.
      return;
    }
    this.#open.delete(id);
    request.release();
    if (message.error !== undefined && message.error !== null) {
      request.reject(errorFromRpc(message.error));
    } else {
      request.resolve(message.result);
    }
    this.#startWaiting();
  }

  #startWaiting(): void {
    const [next] = this.#waiting;
    if (next !== undefined) {
      next.start();
    } else if (this.#open.size === 0) {
      this.#events.onActivity(false);
    }
  }

  #takeNotification(method: string, params: unknown): void {
    if (method === 'cancel') {
      const { id } = (params ?? {}) as { id?: RequestId };
      if (id !== undefined) {
        this.#incoming.get(id)?.abort(new TGPError('EINTERNAL', 'the kernel cancelled the request'));
      }
      return;
    }
    this.#events.onNotification(method, params);
  }

  async #answer(id: RequestId, method: string, params: unknown): Promise<void> {
    let answer: { result: unknown } | { error: RpcError };
    if (this.#incoming.size >= MAX_INCOMING_REQUESTS) {
      answer = { error: { code: -32000, message: `the host works on ${MAX_INCOMING_REQUESTS} requests already` } };
    } else {
      const controller = new AbortController();
      this.#incoming.set(id, controller);
      try {
        const result = this.#events.onRequest(method, params, controller.signal);
        answer =
          result === undefined
            ? { error: { code: METHOD_NOT_FOUND, message: `unknown method \`${method}\`` } }
            : { result: (await result) ?? null };
      } catch (error) {
        answer = { error: errorToRpc(error) };
      }
      this.#incoming.delete(id);
    }
    if (this.#closed !== undefined) {
      return;
    }
    try {
      this.#write({ jsonrpc: '2.0', id, ...answer });
    } catch (error) {
      this.#write({ jsonrpc: '2.0', id, error: errorToRpc(error) });
    }
  }
}

interface Message {
  id?: RequestId;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: RpcError;
}

function parse(line: string): Message {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    throw notAMessage(line);
  }
  if (typeof message !== 'object' || message === null || Array.isArray(message)) {
    throw notAMessage(line);
  }
  return message as Message;
}

function notAMessage(line: string): TGPError {
  const shown = line.length > SHOWN_CHARACTERS ? `${line.slice(0, SHOWN_CHARACTERS)}…` : line;
  return new TGPError('EINTERNAL', `the kernel wrote a line that is not a message: ${JSON.stringify(shown)}`);
}

function encode(message: object): string {
  let line: string;
  try {
    line = stringify(message);
  } catch (error) {
    throw new TGPError('EVALIDATION', `the value has no JSON form: ${messageOf(error)}`, {}, { cause: error });
  }
  const size = Buffer.byteLength(line);
  if (size > MAX_LINE_BYTES) {
    throw new TGPError('EVALIDATION', `the message has ${size} bytes; at most ${MAX_LINE_BYTES} are allowed`);
  }
  return `${line}\n`;
}

/** A replacer makes it slow, so it is used only where a big integer needs it. */
function stringify(message: object): string {
  try {
    return JSON.stringify(message);
  } catch {
    return JSON.stringify(message, exactNumbers);
  }
}

/** JSON has no big integers: those beyond 2^53 become strings, as the kernel writes them. */
function exactNumbers(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') {
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  }
  return value;
}
