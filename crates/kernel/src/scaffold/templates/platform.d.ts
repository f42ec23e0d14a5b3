
// What the worker has of the web and of Node.

/** The global object, by the names other platforms give it. */
declare const self: typeof globalThis;
declare const global: typeof globalThis;

type TGPLog = (...values: unknown[]) => void;
/** Each call is one entry of the run's log. */
declare const console: Record<'log' | 'info' | 'debug' | 'trace' | 'warn' | 'error' | 'dirxml' | 'group' | 'groupCollapsed', TGPLog> & {
  assert(condition?: unknown, ...values: unknown[]): void;
  table(data?: unknown, columns?: readonly string[]): void;
  dir(value: unknown, options?: { depth?: number | null }): void;
  groupEnd(): void;
  count(label?: string): void;
  countReset(label?: string): void;
  time(label?: string): void;
  timeLog(label?: string, ...values: unknown[]): void;
  timeEnd(label?: string): void;
  clear(): void;
};
declare function setTimeout<Values extends unknown[]>(callback: (...values: Values) => void, delay?: number, ...values: Values): number;
declare function clearTimeout(id?: number): void;
declare function setInterval<Values extends unknown[]>(callback: (...values: Values) => void, delay?: number, ...values: Values): number;
declare function clearInterval(id?: number): void;
declare function setImmediate<Values extends unknown[]>(callback: (...values: Values) => void, ...values: Values): number;
declare function clearImmediate(id?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<Value>(value: Value, options?: { transfer?: readonly ArrayBuffer[] }): Value;
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare const performance: { now(): number; readonly timeOrigin: number; toJSON(): object };
interface ErrorConstructor {
  captureStackTrace(target: object, above?: Function): void;
  stackTraceLimit: number;
}

type BufferSource = ArrayBuffer | ArrayBufferView;
type BufferEncoding = 'utf8' | 'utf-8' | 'hex' | 'base64' | 'base64url' | 'latin1' | 'binary' | 'ascii' | 'utf16le' | 'utf-16le' | 'ucs2' | 'ucs-2';

/** Node's byte array. */
interface Buffer extends Uint8Array<ArrayBuffer> {
  toString(encoding?: BufferEncoding, start?: number, end?: number): string;
  toJSON(): { type: 'Buffer'; data: number[] };
  equals(other: Uint8Array): boolean;
  compare(target: Uint8Array, targetStart?: number, targetEnd?: number, sourceStart?: number, sourceEnd?: number): -1 | 0 | 1;
  indexOf(value: string | number | Uint8Array, from?: number, encoding?: BufferEncoding): number;
  lastIndexOf(value: string | number | Uint8Array, from?: number, encoding?: BufferEncoding): number;
  includes(value: string | number | Uint8Array, from?: number, encoding?: BufferEncoding): boolean;
  slice(start?: number, end?: number): Buffer;
  subarray(start?: number, end?: number): Buffer;
  copy(target: Uint8Array, targetStart?: number, sourceStart?: number, sourceEnd?: number): number;
  fill(value: string | number | Uint8Array, offset?: number, end?: number, encoding?: BufferEncoding): this;
  write(text: string, encoding?: BufferEncoding): number;
  write(text: string, offset: number, encoding?: BufferEncoding): number;
  write(text: string, offset: number, length: number, encoding?: BufferEncoding): number;
  swap16(): this;
  swap32(): this;
  swap64(): this;
  readUInt8(offset?: number): number;
  readInt8(offset?: number): number;
  readUInt16LE(offset?: number): number;
  readUInt16BE(offset?: number): number;
  readInt16LE(offset?: number): number;
  readInt16BE(offset?: number): number;
  readUInt32LE(offset?: number): number;
  readUInt32BE(offset?: number): number;
  readInt32LE(offset?: number): number;
  readInt32BE(offset?: number): number;
  readBigUInt64LE(offset?: number): bigint;
  readBigUInt64BE(offset?: number): bigint;
  readBigInt64LE(offset?: number): bigint;
  readBigInt64BE(offset?: number): bigint;
  readFloatLE(offset?: number): number;
  readFloatBE(offset?: number): number;
  readDoubleLE(offset?: number): number;
  readDoubleBE(offset?: number): number;
  readUIntLE(offset: number, byteLength: number): number;
  readUIntBE(offset: number, byteLength: number): number;
  readIntLE(offset: number, byteLength: number): number;
  readIntBE(offset: number, byteLength: number): number;
  writeUInt8(value: number, offset?: number): number;
  writeInt8(value: number, offset?: number): number;
  writeUInt16LE(value: number, offset?: number): number;
  writeUInt16BE(value: number, offset?: number): number;
  writeInt16LE(value: number, offset?: number): number;
  writeInt16BE(value: number, offset?: number): number;
  writeUInt32LE(value: number, offset?: number): number;
  writeUInt32BE(value: number, offset?: number): number;
  writeInt32LE(value: number, offset?: number): number;
  writeInt32BE(value: number, offset?: number): number;
  writeBigUInt64LE(value: bigint, offset?: number): number;
  writeBigUInt64BE(value: bigint, offset?: number): number;
  writeBigInt64LE(value: bigint, offset?: number): number;
  writeBigInt64BE(value: bigint, offset?: number): number;
  writeFloatLE(value: number, offset?: number): number;
  writeFloatBE(value: number, offset?: number): number;
  writeDoubleLE(value: number, offset?: number): number;
  writeDoubleBE(value: number, offset?: number): number;
  writeUIntLE(value: number, offset: number, byteLength: number): number;
  writeUIntBE(value: number, offset: number, byteLength: number): number;
  writeIntLE(value: number, offset: number, byteLength: number): number;
  writeIntBE(value: number, offset: number, byteLength: number): number;
}
declare const Buffer: {
  readonly prototype: Buffer;
  from(text: string, encoding?: BufferEncoding): Buffer;
  from(buffer: ArrayBuffer, offset?: number, length?: number): Buffer;
  from(bytes: ArrayLike<number> | { type: 'Buffer'; data: readonly number[] }): Buffer;
  of(...bytes: number[]): Buffer;
  alloc(size: number, fill?: string | number | Uint8Array, encoding?: BufferEncoding): Buffer;
  allocUnsafe(size: number): Buffer;
  allocUnsafeSlow(size: number): Buffer;
  concat(list: readonly Uint8Array[], totalLength?: number): Buffer;
  byteLength(value: string | BufferSource, encoding?: BufferEncoding): number;
  compare(one: Uint8Array, other: Uint8Array): -1 | 0 | 1;
  isBuffer(value: unknown): value is Buffer;
  isEncoding(name: string): name is BufferEncoding;
  [Symbol.hasInstance](value: unknown): boolean;
};

type KeyUsage = 'encrypt' | 'decrypt' | 'sign' | 'verify' | 'deriveKey' | 'deriveBits' | 'wrapKey' | 'unwrapKey';
type HashName = 'SHA-1' | 'SHA-256' | 'SHA-384' | 'SHA-512';
type HashAlgorithm = HashName | { name: HashName };
interface JsonWebKey {
  kty?: string; k?: string; crv?: string; x?: string; y?: string; d?: string; alg?: string; use?: string; ext?: boolean; key_ops?: string[];
}
/** HMAC, AES-GCM, HKDF, PBKDF2, ECDSA (P-256, P-384) or Ed25519, with the fields of the operation. */
type CryptoAlgorithm = string | {
  name: string; hash?: HashAlgorithm; length?: number; namedCurve?: 'P-256' | 'P-384'; iv?: BufferSource; additionalData?: BufferSource;
  tagLength?: 128; salt?: BufferSource; info?: BufferSource; iterations?: number;
};
declare class CryptoKey {
  private constructor();
  readonly type: 'secret' | 'private' | 'public';
  readonly extractable: boolean;
  readonly algorithm: { name: string; length?: number; namedCurve?: string; hash?: { name: string } };
  readonly usages: KeyUsage[];
}
interface CryptoKeyPair { readonly publicKey: CryptoKey; readonly privateKey: CryptoKey }
declare class SubtleCrypto {
  private constructor();
  digest(algorithm: HashAlgorithm, data: BufferSource): Promise<ArrayBuffer>;
  generateKey(algorithm: 'Ed25519' | { name: 'Ed25519' } | { name: 'ECDSA'; namedCurve: 'P-256' | 'P-384' }, extractable: boolean, usages: readonly KeyUsage[]): Promise<CryptoKeyPair>;
  generateKey(algorithm: { name: 'AES-GCM'; length: 128 | 192 | 256 } | { name: 'HMAC'; hash: HashAlgorithm; length?: number }, extractable: boolean, usages: readonly KeyUsage[]): Promise<CryptoKey>;
  importKey(format: 'jwk', data: JsonWebKey, algorithm: CryptoAlgorithm, extractable: boolean, usages: readonly KeyUsage[]): Promise<CryptoKey>;
  importKey(format: 'raw' | 'spki' | 'pkcs8', data: BufferSource, algorithm: CryptoAlgorithm, extractable: boolean, usages: readonly KeyUsage[]): Promise<CryptoKey>;
  exportKey(format: 'jwk', key: CryptoKey): Promise<JsonWebKey>;
  exportKey(format: 'raw' | 'spki' | 'pkcs8', key: CryptoKey): Promise<ArrayBuffer>;
  sign(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  verify(algorithm: CryptoAlgorithm, key: CryptoKey, signature: BufferSource, data: BufferSource): Promise<boolean>;
  encrypt(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  decrypt(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  deriveBits(algorithm: CryptoAlgorithm, key: CryptoKey, length: number): Promise<ArrayBuffer>;
  deriveKey(algorithm: CryptoAlgorithm, key: CryptoKey, wanted: CryptoAlgorithm, extractable: boolean, usages: readonly KeyUsage[]): Promise<CryptoKey>;
  wrapKey(format: 'raw' | 'jwk' | 'pkcs8' | 'spki', key: CryptoKey, wrapping: CryptoKey, algorithm: CryptoAlgorithm): Promise<ArrayBuffer>;
  unwrapKey(format: 'raw' | 'jwk' | 'pkcs8' | 'spki', wrapped: BufferSource, wrapping: CryptoKey, unwrapAlgorithm: CryptoAlgorithm, algorithm: CryptoAlgorithm, extractable: boolean, usages: readonly KeyUsage[]): Promise<CryptoKey>;
}
declare const crypto: {
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
  getRandomValues<Values extends ArrayBufferView>(array: Values): Values;
  readonly subtle: SubtleCrypto;
};

type HeadersInit = Headers | Record<string, string> | Iterable<readonly [string, string]>;
type BodyInit = string | BufferSource | Blob | FormData | URLSearchParams | ReadableStream<Uint8Array>;
interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: 'follow' | 'manual' | 'error';
  signal?: AbortSignal | null;
  /** A name of `secrets` in the configuration: the kernel inserts its value, the tool never sees it. */
  secret?: string;
}
interface ResponseInit { status?: number; statusText?: string; headers?: HeadersInit }
interface Body {
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json<Value = any>(): Promise<Value>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  blob(): Promise<Blob>;
  formData(): Promise<FormData>;
}
/** A request to a URL of allowedFetchUrls, the same as `tgp.fetch`. */
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;

declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(callback: (value: string, name: string, headers: Headers) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
interface Request extends Body {}
declare class Request {
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly redirect: 'follow' | 'manual' | 'error';
  readonly signal: AbortSignal;
  clone(): Request;
}
interface Response extends Body {}
declare class Response {
  constructor(body?: BodyInit | null, init?: ResponseInit);
  static json(data: unknown, init?: ResponseInit): Response;
  static redirect(url: string | URL, status?: number): Response;
  static error(): Response;
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly redirected: boolean;
  readonly type: 'basic' | 'default' | 'error';
  readonly headers: Headers;
  clone(): Response;
}

declare class Blob {
  constructor(parts?: Iterable<string | BufferSource | Blob>, options?: { type?: string; endings?: 'transparent' | 'native' });
  readonly size: number;
  readonly type: string;
  slice(start?: number, end?: number, type?: string): Blob;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  stream(): ReadableStream<Uint8Array>;
}
declare class File extends Blob {
  constructor(parts: Iterable<string | BufferSource | Blob>, name: string, options?: { type?: string; lastModified?: number });
  readonly name: string;
  readonly lastModified: number;
}
declare class FormData {
  append(name: string, value: string | Blob, filename?: string): void;
  set(name: string, value: string | Blob, filename?: string): void;
  delete(name: string): void;
  get(name: string): string | File | null;
  getAll(name: string): (string | File)[];
  has(name: string): boolean;
  forEach(callback: (value: string | File, name: string, form: FormData) => void): void;
  entries(): IterableIterator<[string, string | File]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string | File>;
  [Symbol.iterator](): IterableIterator<[string, string | File]>;
}

interface QueuingStrategy<Chunk> { highWaterMark?: number; size?(chunk: Chunk): number }
interface UnderlyingSource<Chunk> {
  type?: 'bytes';
  start?(controller: ReadableStreamDefaultController<Chunk>): unknown;
  pull?(controller: ReadableStreamDefaultController<Chunk>): unknown;
  cancel?(reason: unknown): unknown;
}
interface UnderlyingSink<Chunk> {
  start?(controller: WritableStreamDefaultController): unknown;
  write?(chunk: Chunk, controller: WritableStreamDefaultController): unknown;
  close?(): unknown;
  abort?(reason: unknown): unknown;
}
interface Transformer<Input, Output> {
  start?(controller: TransformStreamDefaultController<Output>): unknown;
  transform?(chunk: Input, controller: TransformStreamDefaultController<Output>): unknown;
  flush?(controller: TransformStreamDefaultController<Output>): unknown;
  cancel?(reason: unknown): unknown;
}
interface PipeOptions { preventClose?: boolean; preventAbort?: boolean; preventCancel?: boolean; signal?: AbortSignal }
/** Read with a default reader or `for await`; there is no BYOB reader. */
declare class ReadableStream<Chunk = any> {
  constructor(source?: UnderlyingSource<Chunk>, strategy?: QueuingStrategy<Chunk>);
  static from<Chunk>(iterable: Iterable<Chunk> | AsyncIterable<Chunk>): ReadableStream<Chunk>;
  readonly locked: boolean;
  getReader(): ReadableStreamDefaultReader<Chunk>;
  cancel(reason?: unknown): Promise<void>;
  tee(): [ReadableStream<Chunk>, ReadableStream<Chunk>];
  pipeTo(destination: WritableStream<Chunk>, options?: PipeOptions): Promise<void>;
  pipeThrough<Output>(transform: { readable: ReadableStream<Output>; writable: WritableStream<Chunk> }, options?: PipeOptions): ReadableStream<Output>;
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<Chunk>;
  [Symbol.asyncIterator](): AsyncIterableIterator<Chunk>;
}
declare class ReadableStreamDefaultReader<Chunk = any> {
  constructor(stream: ReadableStream<Chunk>);
  readonly closed: Promise<undefined>;
  read(): Promise<{ done: false; value: Chunk } | { done: true; value: undefined }>;
  cancel(reason?: unknown): Promise<void>;
  releaseLock(): void;
}
declare class ReadableStreamDefaultController<Chunk = any> {
  private constructor();
  readonly desiredSize: number | null;
  enqueue(chunk?: Chunk): void;
  close(): void;
  error(reason?: unknown): void;
}
declare class WritableStream<Chunk = any> {
  constructor(sink?: UnderlyingSink<Chunk>, strategy?: QueuingStrategy<Chunk>);
  readonly locked: boolean;
  getWriter(): WritableStreamDefaultWriter<Chunk>;
  close(): Promise<void>;
  abort(reason?: unknown): Promise<void>;
}
declare class WritableStreamDefaultWriter<Chunk = any> {
  constructor(stream: WritableStream<Chunk>);
  readonly closed: Promise<undefined>;
  readonly ready: Promise<undefined>;
  readonly desiredSize: number | null;
  write(chunk?: Chunk): Promise<void>;
  close(): Promise<void>;
  abort(reason?: unknown): Promise<void>;
  releaseLock(): void;
}
declare class WritableStreamDefaultController {
  private constructor();
  readonly signal: AbortSignal;
  error(reason?: unknown): void;
}
declare class TransformStream<Input = any, Output = any> {
  constructor(transformer?: Transformer<Input, Output>, writableStrategy?: QueuingStrategy<Input>, readableStrategy?: QueuingStrategy<Output>);
  readonly readable: ReadableStream<Output>;
  readonly writable: WritableStream<Input>;
}
declare class TransformStreamDefaultController<Output = any> {
  private constructor();
  readonly desiredSize: number | null;
  enqueue(chunk?: Output): void;
  error(reason?: unknown): void;
  terminate(): void;
}
declare class CountQueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: () => 1;
}
declare class ByteLengthQueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk: ArrayBufferView) => number;
}
declare class TextEncoderStream {
  readonly encoding: 'utf-8';
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<string>;
}
declare class TextDecoderStream {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<BufferSource>;
}

declare class TextEncoder {
  readonly encoding: 'utf-8';
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}
/** Every encoding of the WHATWG: `utf-8`, `utf-16le`, `windows-1252`, `shift_jis`, … */
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(input?: BufferSource, options?: { stream?: boolean }): string;
}

declare class URLSearchParams {
  constructor(init?: string | Record<string, string> | Iterable<readonly [string, string]>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string, base?: string): boolean;
  static parse(url: string, base?: string): URL | null;
  href: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  hash: string;
  readonly origin: string;
  readonly searchParams: URLSearchParams;
  toString(): string;
  toJSON(): string;
}

declare class Event {
  constructor(type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}
declare class CustomEvent<Detail = any> extends Event {
  constructor(type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean; detail?: Detail });
  readonly detail: Detail;
}
type EventListener = ((event: any) => void) | { handleEvent(event: any): void };
declare class EventTarget {
  addEventListener(type: string, listener: EventListener | null, options?: boolean | { once?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: EventListener | null): void;
  dispatchEvent(event: Event): boolean;
}
declare class AbortSignal extends EventTarget {
  static abort(reason?: unknown): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}
