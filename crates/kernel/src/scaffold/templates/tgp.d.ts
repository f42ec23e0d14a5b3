// What a tool finds in the sandbox: for the type checker, editors and agents. The kernel does not read it.

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** The arguments of the run. A default export gets them as its first parameter too. */
declare const args: any;

/** The kernel, as a tool may call it. */
declare const tgp: {
  /**
   * A file below the tool root, `/lib/…` (the tools), `/tmp/…`, or a directory of fs.allowedDirs or fs.readDirs: as UTF-8 text,
   * as text of another encoding such as 'windows-1252', or as bytes.
   */
  read_file(path: string, options: 'bytes' | { encoding: 'bytes' }): Promise<Uint8Array>;
  read_file(path: string, options?: string | { encoding?: string }): Promise<string>;
  /** Writes text or bytes below fs.allowedDirs (kept when the run succeeds) or to `/tmp/…` (gone after the run). */
  write_file(path: string, content: string | ArrayBufferView | ArrayBuffer): Promise<void>;
  /** Files below a directory, recursively, sorted. */
  list_files(directory?: string): Promise<string[]>;
  /** Runs another tool in a sandbox of its own and gives its result. */
  exec_tool<Result = any>(path: string, args?: object, options?: { limits?: TGPLimits }): Promise<Result>;
  /**
   * Runs one SQL statement in the run's transaction, which is committed when the tool returns and rolled back when it
   * throws. A list of parameters is for `?` or `$1`, an object for `:name`. More rows than the caps of the database allow
   * are an error, unless the options say otherwise.
   */
  exec_sql<Row = any>(
    sql: string,
    params?: readonly TGPParameter[] | Record<string, TGPParameter>,
    options?: {
      /** At most this many rows; `truncated` says whether there are more. */
      maxRows?: number;
      /** As many rows as the caps allow; `truncated` says whether there are more. */
      allowTruncated?: boolean;
    },
  ): Promise<TGPRows<Row>>;
  /**
   * Reads any number of rows: `for await (const row of tgp.query(sql, params))`. A batch (500 rows) is one call. Leaving the
   * loop closes the query.
   */
  query<Row = any>(
    sql: string,
    params?: readonly TGPParameter[] | Record<string, TGPParameter>,
    options?: { batch?: number },
  ): AsyncGenerator<Row, void, void>;
  /** A request to a URL of allowedFetchUrls. */
  fetch(url: string | URL | Request, init?: RequestInit): Promise<Response>;
  log(...values: unknown[]): void;
};

/** A parameter of a statement: JSON, bytes, a moment, or an integer of 64 bits. */
type TGPParameter = string | number | bigint | boolean | null | Date | Uint8Array | ArrayBuffer | readonly unknown[] | object;

/** The rows of a statement. */
interface TGPRows<Row> extends Array<Row> {
  /** Rows that were inserted, updated or deleted. */
  readonly changed: number;
  /** True when there were more rows than the caps of the database allow. */
  readonly truncated: boolean;
}

/** Limits of one run. Above the usual ones a call needs an approval, above `sandbox.ceiling` it is refused. */
interface TGPLimits {
  cpuMs?: number;
  wallMs?: number;
  memoryMb?: number;
}

type TGPRequestInit = RequestInit;
type TGPResponse = Response;

declare function require(specifier: string): any;
declare let module: { exports: any };
declare let exports: any;

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
    fs?: { allowedDirs?: string[]; readDirs?: string[]; blockUpwardTraversal?: boolean };
    allowedImports?: string[];
    allowedFetchUrls?: string[];
    /** Keys that requests use by name, `tgp.fetch(url, { secret: 'NAME' })`, and that no tool sees. */
    secrets?: Record<string, {
      from: { env: string } | { file: string } | { command: string[] };
      hosts: string[];
      methods?: string[];
      paths?: string[];
      as: 'bearer' | { header: string } | { query: string };
    }>;
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
      /** What a call may ask for, after an approval. 10000, 60000 and 512 by default. */
      ceiling?: TGPLimits;
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
      prices?: { input: number; output: number; cachedInput?: number; cacheWrite?: number };
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
