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
  /** Runs SQL on the configured database. */
  exec_sql<Row = any>(sql: string, params?: readonly unknown[]): Promise<Row[]>;
  /** A request to a URL of allowedFetchUrls. */
  fetch(url: string | URL, init?: TGPRequestInit): Promise<TGPResponse>;
  log(...values: unknown[]): void;
};

interface TGPRequestInit {
  method?: string;
  headers?: Record<string, string> | Iterable<readonly [string, string]>;
  body?: string | Uint8Array | ArrayBuffer | URLSearchParams | null;
  redirect?: 'follow' | 'manual' | 'error';
  signal?: AbortSignal;
}

interface TGPResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly redirected: boolean;
  readonly headers: Headers;
  text(): Promise<string>;
  json<Value = any>(): Promise<Value>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
}

declare function require(specifier: string): any;
declare let module: { exports: any };
declare let exports: any;

declare const console: Record<'log' | 'info' | 'debug' | 'trace' | 'warn' | 'error' | 'table' | 'dir', (...values: unknown[]) => void> & {
  assert(condition: unknown, ...values: unknown[]): void;
};
declare function setTimeout<Values extends unknown[]>(callback: (...values: Values) => void, delay?: number, ...values: Values): number;
declare function clearTimeout(id?: number): void;
declare function setInterval<Values extends unknown[]>(callback: (...values: Values) => void, delay?: number, ...values: Values): number;
declare function clearInterval(id?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<Value>(value: Value): Value;
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare const performance: { now(): number };
declare const crypto: {
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
  getRandomValues<Values extends ArrayBufferView>(array: Values): Values;
};

declare class Headers {
  constructor(init?: Record<string, string> | Iterable<readonly [string, string]>);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(callback: (value: string, name: string, headers: Headers) => void): void;
  entries(): IterableIterator<[string, string]>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

declare class TextEncoder {
  readonly encoding: 'utf-8';
  encode(text?: string): Uint8Array;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: 'utf-8';
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
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
  constructor(type: string);
  readonly type: string;
  readonly target: EventTarget | null;
}
declare class EventTarget {
  addEventListener(type: string, listener: (event: Event) => void, options?: { once?: boolean }): void;
  removeEventListener(type: string, listener: (event: Event) => void): void;
  dispatchEvent(event: Event): boolean;
}
declare class AbortSignal extends EventTarget {
  static abort(reason?: unknown): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
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
  }
  export function defineTGPConfig(config: TGPConfig): TGPConfig;
}
