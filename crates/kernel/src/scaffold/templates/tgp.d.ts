// What a tool finds in the sandbox. Written by `tgp init`; the kernel does not read it, the type checker does.

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** The arguments of the run. A default export gets them as its first parameter too. */
declare const args: any;

/** The kernel, as a tool may call it. */
declare const tgp: {
  /** Text of a file: below the tool root, `/lib/…` (the tools), `/tmp/…`, or a directory of fs.allowedDirs. */
  read_file(path: string): Promise<string>;
  /** Writes below fs.allowedDirs (kept when the run succeeds) or to `/tmp/…` (gone after the run). */
  write_file(path: string, content: string): Promise<void>;
  /** Files below a directory, recursively, sorted. */
  list_files(directory?: string): Promise<string[]>;
  /** Runs another tool in a sandbox of its own and gives its result. */
  exec_tool<Result = any>(path: string, args?: object): Promise<Result>;
  /**
   * Runs one SQL statement in the run's transaction, which is committed when the tool returns and rolled back when it
   * throws. A list of parameters is for `?` or `$1`, an object for `:name`.
   */
  exec_sql<Row = any>(sql: string, params?: readonly unknown[] | Record<string, unknown>): Promise<TGPRows<Row>>;
  /** A request to a URL of allowedFetchUrls. */
  fetch(url: string | URL | Request, init?: RequestInit): Promise<Response>;
  log(...values: unknown[]): void;
};

/** The rows of a statement. */
interface TGPRows<Row> extends Array<Row> {
  /** Rows that were inserted, updated or deleted. */
  readonly changed: number;
  /** True when there were more rows than the caps of the database allow. */
  readonly truncated: boolean;
}

type TGPRequestInit = RequestInit;
type TGPResponse = Response;

declare function require(specifier: string): any;
declare let module: { exports: any };
declare let exports: any;

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

declare module '@tgp/core' {
  export interface TGPConfig {
    rootDir?: string;
    git?: {
      provider?: 'github' | 'gitlab' | 'bitbucket';
      repo?: string;
      url?: string;
      branch?: string;
      apiBaseUrl?: string;
      auth?: { token?: string; user?: string; email?: string };
      writeStrategy?: 'direct' | 'pr';
    };
    fs?: { allowedDirs?: string[]; blockUpwardTraversal?: boolean };
    allowedImports?: string[];
    allowedFetchUrls?: string[];
    db?: {
      url?: string;
      readOnly?: boolean;
      /** Statements that only read are not asked for, unless a rule asks. false by default. */
      freeReads?: boolean;
      statementTimeoutMs?: number;
      maxRows?: number;
      maxBytes?: number;
      pool?: number;
    };
    registry?: {
      onDuplicate?: 'confirm' | 'warn' | 'refuse';
      embeddings?: { baseUrl: string; model: string; apiKey?: string };
    };
    sandbox?: {
      memoryMb?: number;
      cpuMs?: number;
      wallMs?: number;
      outputBytes?: number;
      logLines?: number;
      logBytes?: number;
      bridgeCalls?: number;
      pool?: number;
      seed?: number;
      clock?: number;
    };
    audit?: {
      durability?: 'batched' | 'call';
      redact?: { names?: string[]; environment?: string[] };
    };
    policy?: { files?: string[] };
    tdd?: {
      mode?: 'strict' | 'explore' | 'debug';
      tests?: string[];
      exempt?: string[];
      command?: string;
    };
    chronicle?: {
      scope?: string[];
      /** Where the chronicle of src/a.ts is: in .sage/files, or beside it. */
      layout?: 'tree' | 'beside';
      durability?: 'batched' | 'event';
      edits?: boolean;
    };
    jail?: {
      memoryMb?: number;
      processes?: number;
      fileMb?: number;
      layerMb?: number;
      timeoutMs?: number;
      outputBytes?: number;
      sessionFiles?: number;
      projectEntries?: number;
      direct?: string[];
      readable?: string[];
    };
    llm?: {
      /** 'openai', 'openai-chat', 'anthropic', a base URL of a compatible server, or 'script:FILE'. */
      provider?: string;
      model?: string;
      baseUrl?: string;
      /** The environment variable that holds the key. */
      keyVariable?: string;
      contextTokens?: number;
      maxOutputTokens?: number;
      temperature?: number;
      /** Fields that are added to every request. */
      body?: { [field: string]: unknown };
      budgets?: { steps?: number; tokens?: number; seconds?: number; cost?: number };
      /** What a million tokens cost. */
      prices?: { input: number; output: number };
      timeouts?: { connectSeconds?: number; idleSeconds?: number; totalSeconds?: number };
      attempts?: number;
    };
  }
  export function defineTGPConfig(config: TGPConfig): TGPConfig;
}

declare module '@tgp/test' {
  /** What can be said of a value; each throws when it does not hold. */
  interface Matchers<Done> {
    /** The same value, by `Object.is`. */
    toBe(expected: unknown): Done;
    /** The same values in the same shape; a property that is undefined counts as none. */
    toEqual(expected: unknown): Done;
    toBeCloseTo(expected: number, digits?: number): Done;
    /** A part of a text, or an item of a list. */
    toContain(expected: unknown): Done;
    toMatch(expected: string | RegExp): Done;
    toBeNull(): Done;
    toBeUndefined(): Done;
    toBeDefined(): Done;
    toBeNaN(): Done;
    toBeTruthy(): Done;
    toBeFalsy(): Done;
    toHaveLength(expected: number): Done;
    toBeInstanceOf(expected: Function): Done;
    toBeGreaterThan(expected: number | bigint): Done;
    toBeGreaterThanOrEqual(expected: number | bigint): Done;
    toBeLessThan(expected: number | bigint): Done;
    toBeLessThanOrEqual(expected: number | bigint): Done;
    /** A function that throws; a text or a pattern is for the message. */
    toThrow(expected?: string | RegExp | Error | Function): Done;
  }
  interface Negatable<Done> extends Matchers<Done> {
    readonly not: Matchers<Done>;
  }
  interface Expectation extends Negatable<void> {
    /** What a promise resolves to; await it. */
    readonly resolves: Negatable<Promise<void>>;
    /** What a promise is rejected with; await it. */
    readonly rejects: Negatable<Promise<void>>;
  }
  /** Says what `received` should be: `expect(sum(1, 2)).toBe(3)`. */
  export function expect(received: unknown): Expectation;
  /** Declares a test. It fails when `body` throws, or when the promise that it gives is rejected. */
  export function test(name: string, body: () => unknown): void;
  /** The same as `test`. */
  export const it: typeof test;
  /** Declares tests that belong together; their names begin with `name`. */
  export function describe(name: string, body: () => void): void;
  /** Runs `body` before each test of this group and of those in it. */
  export function beforeEach(body: () => unknown): void;
  /** Runs `body` after each test of this group and of those in it, whether it failed or not. */
  export function afterEach(body: () => unknown): void;
}

declare module '@tgp/std' {
  /**
   * `@tgp/std`: small pure functions that many tools need.
   *
   * Nothing here changes its arguments, keeps state or looks at the clock.
   */
  type Key = string | number;
  /** Splits `items` into groups of `size`; the last one may be shorter. */
  export function chunk<Item>(items: readonly Item[], size: number): Item[][];
  /** The items by the key that `key` gives each of them, in their order. */
  export function groupBy<Item>(items: readonly Item[], key: (item: Item) => Key): Record<string, Item[]>;
  /** The last item for each key. */
  export function keyBy<Item>(items: readonly Item[], key: (item: Item) => Key): Record<string, Item>;
  /** How many items have each key. */
  export function countBy<Item>(items: readonly Item[], key: (item: Item) => Key): Record<string, number>;
  /** The items without repetitions; `key` says what counts as the same. */
  export function uniq<Item>(items: readonly Item[], key?: (item: Item) => unknown): Item[];
  /** The items for which `test` holds, and the others. */
  export function partition<Item>(items: readonly Item[], test: (item: Item) => boolean): [Item[], Item[]];
  /** A sorted copy. Several keys decide in their order; `descending` turns it round. */
  export function sortBy<Item>(items: readonly Item[], keys: ((item: Item) => Key | bigint | boolean | Date) | ((item: Item) => Key | bigint | boolean | Date)[], { descending }?: {
    descending?: boolean;
  }): Item[];
  /** Pairs the items of two lists; the longer one is cut. */
  export function zip<One, Other>(ones: readonly One[], others: readonly Other[]): [One, Other][];
  /** `range(3)` is 0, 1, 2; `range(1, 4)` is 1, 2, 3; the step may be negative. */
  export function range(start: number, end?: number, step?: number): number[];
  /** The sum; 0 for nothing. */
  export function sum(values: readonly number[]): number;
  /** The arithmetic mean; `undefined` for nothing. */
  export function mean(values: readonly number[]): number | undefined;
  /** The middle value; `undefined` for nothing. */
  export function median(values: readonly number[]): number | undefined;
  /** The value below which the fraction `share` of the values lies, interpolated; `undefined` for nothing. */
  export function quantile(values: readonly number[], share: number): number | undefined;
  /** The value, not below `low` and not above `high`. */
  export function clamp(value: number, low: number, high: number): number;
  /** Rounded to `digits` decimal places, halves away from zero. */
  export function round(value: number, digits?: number): number;
  /** Only the named properties, those that exist. */
  export function pick<Value extends object, Name extends keyof Value>(value: Value, names: readonly Name[]): Pick<Value, Name>;
  /** Everything but the named properties. */
  export function omit<Value extends object, Name extends keyof Value>(value: Value, names: readonly Name[]): Omit<Value, Name>;
  /** A new object with every value changed. */
  export function mapValues<Value, Result>(record: Readonly<Record<string, Value>>, change: (value: Value, key: string) => Result): Record<string, Result>;
  /** Whether two values have the same structure: plain objects, arrays, dates, maps, sets and primitives. */
  export function deepEqual(one: unknown, other: unknown): boolean;
  /** Lower-case words joined by `-`, accents removed: `Crème brûlée!` becomes `creme-brulee`. */
  export function slugify(text: string, separator?: string): string;
  /** The words of a text: `fooBar baz_qux` has `foo`, `Bar`, `baz` and `qux`. */
  export function words(text: string): string[];
  /** The first letter in upper case. */
  export function capitalize(text: string): string;
  /** At most `length` characters; what is cut is marked by `mark`. */
  export function truncate(text: string, length: number, mark?: string): string;
  /** The rows of a CSV text (RFC 4180): quoted fields may hold separators, quotes and line ends. */
  export function parseCsvRows(text: string, { separator }?: {
    separator?: string;
  }): string[][];
  /** The records of a CSV text whose first row names the columns. */
  export function parseCsv(text: string, options?: {
    separator?: string;
  }): Record<string, string>[];
  /** A CSV text of records. The columns are those of the first record unless they are named. */
  export function toCsv(records: readonly Readonly<Record<string, unknown>>[], { columns, separator }?: {
    columns?: readonly string[];
    separator?: string;
  }): string;
  export {};
}
