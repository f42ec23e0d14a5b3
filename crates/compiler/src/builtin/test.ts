/**
 * `@tgp/test`: tests for tools, in the sandbox the tools run in.
 *
 * A test file stands beside its tool as `name.test.ts`. What its tests write is undone.
 */

type Body = () => unknown;

/** What one matcher found out. */
interface Verdict {
  readonly pass: boolean;
  /** What was expected, as the end of a sentence. */
  readonly phrase: string;
  readonly expected?: unknown;
  /** What stands for the received value where that says more. */
  readonly received?: unknown;
}

interface Group {
  readonly name: string;
  readonly before: Body[];
  readonly after: Body[];
}

interface Case {
  readonly name: string;
  readonly body: Body;
  readonly groups: readonly Group[];
}

interface Failure {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly code?: string;
  readonly expected?: string;
  readonly received?: string;
}

interface Result {
  readonly name: string;
  readonly ok: boolean;
  readonly durationMs: number;
  readonly error?: Failure;
}

/** Tests of one file; more belong into several. */
const MAX_TESTS = 1000;
/** Groups inside each other. */
const MAX_GROUPS = 16;
/** Characters of a value or a message that are shown. */
const MAX_TEXT = 2000;
/** Levels of a value, and items of each, that are shown. */
const MAX_DEPTH = 6;
const MAX_ITEMS = 50;
/** A test that waits longer has failed; the others go on. */
const MAX_TEST_MS = 2000;
const DEFAULT_DIGITS = 2;

const cases: Case[] = [];
let groups: Group[] = [{ name: '', before: [], after: [] }];
let running = false;

function register(what: string, name: unknown, body: unknown): void {
  if (running) throw new Error(`${what}() inside a test: tests are declared before they run`);
  if (typeof name !== 'string' || name.trim() === '') throw new TypeError(`${what}: the name must be a text`);
  if (typeof body !== 'function') throw new TypeError(`${what}('${name}'): the body must be a function`);
}

/** Declares a test. It fails when `body` throws, or when the promise that it gives is rejected. */
export function test(name: string, body: Body): void {
  register('test', name, body);
  if (cases.length >= MAX_TESTS) throw new RangeError(`a file has at most ${MAX_TESTS} tests; write another one`);
  const names = [...groups.map((group) => group.name), name].filter((part) => part !== '');
  cases.push({ name: clipped(names.join(' > ')), body, groups });
}

/** The same as `test`. */
export const it = test;

/** Declares tests that belong together; their names begin with `name`. */
export function describe(name: string, body: () => void): void {
  register('describe', name, body);
  if (groups.length > MAX_GROUPS) throw new RangeError(`describe: more than ${MAX_GROUPS} groups inside each other`);
  const outer = groups;
  groups = [...outer, { name, before: [], after: [] }];
  try {
    const given: unknown = body();
    if (isThenable(given)) throw new TypeError(`describe('${name}'): the body must not be async`);
  } finally {
    groups = outer;
  }
}

/** Runs `body` before each test of this group and of those in it. */
export function beforeEach(body: Body): void {
  register('beforeEach', 'hook', body);
  groups[groups.length - 1]?.before.push(body);
}

/** Runs `body` after each test of this group and of those in it, whether it failed or not. */
export function afterEach(body: Body): void {
  register('afterEach', 'hook', body);
  groups[groups.length - 1]?.after.push(body);
}

/** Begins a line of the log that is for the kernel: `testing.rs` has it as well. */
const PROGRESS = '\u001etgp:test ';
const say = console.debug;

/** Runs what was declared, one test after the other. The kernel calls it. */
export async function run(): Promise<{ tests: Result[] }> {
  running = true;
  const tests: Result[] = [];
  // A test without an end takes the result of the whole file with it, so that each one is told of when it has ended.
  const tell = (result?: Result) => say(PROGRESS + JSON.stringify({ result, next: cases[tests.length]?.name }));
  tell();
  for (const one of cases) {
    const result = await runOne(one);
    tests.push(result);
    tell(result);
  }
  return { tests };
}

async function runOne({ name, body, groups: around }: Case): Promise<Result> {
  const started = performance.now();
  const before = around.flatMap((group) => group.before);
  const after = [...around].reverse().flatMap((group) => group.after);
  const errors: Failure[] = [];
  const attempt = async (bodies: readonly Body[]): Promise<void> => {
    try {
      await inTime(name, async () => {
        for (const one of bodies) await one();
      });
    } catch (thrown) {
      errors.push(failure(thrown));
    }
  };
  await attempt([...before, body]);
  await attempt(after);
  const durationMs = Math.max(0, Math.round((performance.now() - started) * 1000) / 1000);
  const error = errors[0];
  return error ? { name, ok: false, durationMs, error } : { name, ok: true, durationMs };
}

/** Waits for `work`, but not for ever. */
function inTime(name: string, work: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`'${name}' did not end within ${MAX_TEST_MS} ms: is every promise settled?`));
    const timer = setTimeout(late, MAX_TEST_MS);
    work().then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function failure(thrown: unknown): Failure {
  if (thrown instanceof AssertionError) {
    const { name, message, expected, received } = thrown;
    return { name, message: clipped(message), stack: String(thrown.stack), expected, received };
  }
  if (thrown instanceof Error) {
    const code = (thrown as { code?: unknown }).code;
    const known = { name: clipped(String(thrown.name)), message: clipped(String(thrown.message)), stack: String(thrown.stack) };
    return typeof code === 'string' ? { ...known, code } : known;
  }
  return { name: '', message: clipped(`the test threw ${show(thrown)}`), stack: '' };
}

class AssertionError extends Error {
  override readonly name = 'AssertionError';
  constructor(
    message: string,
    readonly expected: string | undefined,
    readonly received: string,
  ) {
    super(message);
  }
}

/** Every matcher, by its name. */
const matchers: Record<string, (received: any, ...args: any[]) => Verdict> = {
  toBe: (received, expected) => ({ pass: Object.is(received, expected), phrase: 'to be', expected }),
  toEqual: (received, expected) => ({ pass: equal(received, expected, []), phrase: 'to equal', expected }),
  toBeCloseTo: (received, expected, digits = DEFAULT_DIGITS) => ({
    pass: received === expected || Math.abs(number('toBeCloseTo', received) - expected) < 10 ** -digits / 2,
    phrase: `to be within ${digits} digits of`,
    expected,
  }),
  toContain: (received, expected) => ({ pass: contains(received, expected), phrase: 'to contain', expected }),
  toMatch: (received, expected) => ({ pass: matches(String(received), expected), phrase: 'to match', expected }),
  toBeNull: (received) => ({ pass: received === null, phrase: 'to be', expected: null }),
  toBeUndefined: (received) => ({ pass: received === undefined, phrase: 'to be', expected: undefined }),
  toBeDefined: (received) => ({ pass: received !== undefined, phrase: 'to be defined' }),
  toBeNaN: (received) => ({ pass: Number.isNaN(received), phrase: 'to be', expected: NaN }),
  toBeTruthy: (received) => ({ pass: Boolean(received), phrase: 'to be truthy' }),
  toBeFalsy: (received) => ({ pass: !received, phrase: 'to be falsy' }),
  toHaveLength: (received, expected) => ({
    pass: received?.length === expected,
    phrase: 'to have length',
    expected,
  }),
  toBeInstanceOf: (received, expected) => ({ pass: received instanceof expected, phrase: 'to be an instance of', expected }),
  toBeGreaterThan: (received, expected) => ({ pass: ordered(received, expected) > 0, phrase: 'to be greater than', expected }),
  toBeGreaterThanOrEqual: (received, expected) => ({
    pass: ordered(received, expected) >= 0,
    phrase: 'to be at least',
    expected,
  }),
  toBeLessThan: (received, expected) => ({ pass: ordered(received, expected) < 0, phrase: 'to be less than', expected }),
  toBeLessThanOrEqual: (received, expected) => ({ pass: ordered(received, expected) <= 0, phrase: 'to be at most', expected }),
  toThrow: (received, ...wanted) => {
    const outcome = thrownBy(received);
    const expected = wanted[0] === undefined ? {} : { expected: wanted[0] };
    if (!outcome.threw) return { pass: false, phrase: 'to throw', ...expected, received: 'a function that returned' };
    return { pass: isSuchError(outcome.error, wanted[0]), phrase: 'to throw', ...expected, received: outcome.error };
  },
};

/** Marks what a promise was rejected with, so that `toThrow` takes it for thrown. */
class Rejection {
  constructor(readonly error: unknown) {}
}

function thrownBy(received: unknown): { threw: boolean; error?: unknown } {
  if (received instanceof Rejection) return { threw: true, error: received.error };
  if (typeof received !== 'function') throw new TypeError('toThrow: expect() must be given a function to call');
  let given: unknown;
  try {
    given = received();
  } catch (error) {
    return { threw: true, error };
  }
  if (!isThenable(given)) return { threw: false };
  // Its own failure is not the one to tell.
  given.then(undefined, () => undefined);
  throw new TypeError('toThrow: the function is async; write `await expect(promise).rejects.toThrow()`');
}

function isSuchError(error: unknown, expected: unknown): boolean {
  if (expected === undefined) return true;
  if (typeof expected === 'function') return error instanceof expected;
  const message = error instanceof Error ? error.message : String((error as { message?: unknown } | null)?.message ?? error);
  return expected instanceof Error ? message === expected.message : matches(message, expected);
}

function matches(text: string, expected: unknown): boolean {
  return expected instanceof RegExp ? new RegExp(expected.source, expected.flags.replace(/[gy]/g, '')).test(text) : text.includes(String(expected));
}

function contains(received: unknown, expected: unknown): boolean {
  if (typeof received === 'string') return received.includes(String(expected));
  if (received !== null && typeof received === 'object' && Symbol.iterator in received) {
    return [...(received as Iterable<unknown>)].some((item) => Object.is(item, expected));
  }
  throw new TypeError(`toContain: ${show(received)} is neither a text nor a list`);
}

function number(matcher: string, value: unknown): number {
  if (typeof value !== 'number') throw new TypeError(`${matcher}: ${show(value)} is not a number`);
  return value;
}

/** Below, at or above 0 as `<` says; NaN where two values have no order. */
function ordered(received: any, expected: any): number {
  if (!['number', 'bigint'].includes(typeof received)) throw new TypeError(`${show(received)} is not a number to compare`);
  if (received < expected) return -1;
  if (received > expected) return 1;
  return received == expected ? 0 : NaN;
}

/** The same values in the same shape. A property that is undefined counts as none. */
function equal(one: any, other: any, open: [unknown, unknown][]): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  const tag = Object.prototype.toString.call(one);
  if (tag !== Object.prototype.toString.call(other)) return false;
  // Two loops are equal when nothing in them differs.
  if (open.some(([a, b]) => a === one && b === other)) return true;
  const deeper: [unknown, unknown][] = [...open, [one, other]];
  const each = (a: unknown[], b: unknown[]) => a.length === b.length && a.every((item, index) => equal(item, b[index], deeper));
  if (one instanceof Date) return Object.is(one.getTime(), other.getTime());
  if (one instanceof RegExp) return String(one) === String(other);
  if (one instanceof Error && (one.name !== other.name || one.message !== other.message)) return false;
  if (Array.isArray(one)) return each(one, other);
  if (ArrayBuffer.isView(one) && Symbol.iterator in one) return each([...(one as Uint8Array)], [...other]);
  if (one instanceof Map) return one.size === other.size && [...one].every(([key, value]) => other.has(key) && equal(value, other.get(key), deeper));
  if (one instanceof Set) return one.size === other.size && [...one].every((item) => other.has(item) || [...other].some((its) => equal(item, its, deeper)));
  const keys = (value: object) => Reflect.ownKeys(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key) && (value as any)[key] !== undefined);
  const [mine, its] = [keys(one), keys(other)];
  return mine.length === its.length && mine.every((key) => its.includes(key) && equal(one[key], other[key], deeper));
}

/** A value as text, short enough to read. */
function show(value: unknown): string {
  return clipped(shown(value, 0, []));
}

function shown(value: any, depth: number, open: unknown[]): string {
  if (typeof value === 'string') return JSON.stringify(value.length > MAX_TEXT ? value.slice(0, MAX_TEXT) : value);
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return value.name ? `function ${value.name}` : 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  if (open.includes(value)) return '[circular]';
  if (value instanceof Rejection) return shown(value.error, depth, open);
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (depth >= MAX_DEPTH) return Array.isArray(value) ? '[…]' : '{…}';
  const inner = (item: unknown) => shown(item, depth + 1, [...open, value]);
  const list = (items: string[], more: boolean) => [...items, ...(more ? ['…'] : [])].join(', ');
  if (Array.isArray(value)) return `[${list(value.slice(0, MAX_ITEMS).map(inner), value.length > MAX_ITEMS)}]`;
  if (value instanceof Map) {
    const pairs = [...value].slice(0, MAX_ITEMS).map(([key, item]) => `${inner(key)} => ${inner(item)}`);
    return `Map {${list(pairs, value.size > MAX_ITEMS)}}`;
  }
  if (value instanceof Set) return `Set {${list([...value].slice(0, MAX_ITEMS).map(inner), value.size > MAX_ITEMS)}}`;
  if (ArrayBuffer.isView(value) && Symbol.iterator in value) {
    const items = [...(value as Uint8Array).slice(0, MAX_ITEMS)].map(inner);
    return `${value.constructor.name} [${list(items, (value as Uint8Array).length > MAX_ITEMS)}]`;
  }
  const keys = Object.keys(value);
  const fields = keys.slice(0, MAX_ITEMS).map((key) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: ${inner(value[key])}`);
  return keys.length === 0 ? '{}' : `{ ${list(fields, keys.length > MAX_ITEMS)} }`;
}

function clipped(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

function judge(name: string, received: unknown, args: unknown[], negated: boolean, site: Error): void {
  const verdict = matchers[name]!(received, ...args);
  if (verdict.pass !== negated) return;
  const shownReceived = show('received' in verdict ? verdict.received : received);
  const not = negated ? 'not ' : '';
  const hasExpected = 'expected' in verdict;
  const wanted = `${not}${verdict.phrase}${hasExpected ? ` ${show(verdict.expected)}` : ''}`;
  const expected = hasExpected ? `${not}${show(verdict.expected)}` : wanted;
  const error = new AssertionError(`expected ${shownReceived} ${wanted}`, expected, shownReceived);
  // The place of a check is where `expect` was called, also after a wait.
  error.stack = String(site.stack);
  throw error;
}

/** One function for each matcher, which does `check`. */
function wired(check: (name: string, args: unknown[]) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.keys(matchers).map((name) => [name, (...args: unknown[]) => check(name, args)]));
}

/** The matchers of a value that is there. */
function now(received: unknown, negated: boolean, site: Error): Record<string, unknown> {
  return wired((name, args) => judge(name, received, args, negated, site));
}

/** The matchers of a value that a promise gives later; each of them gives a promise. */
function later(settled: () => Promise<unknown>, negated: boolean, site: Error): Record<string, unknown> {
  return wired(async (name, args) => judge(name, await settled(), args, negated, site));
}

/** Says what `received` should be: `expect(sum(1, 2)).toBe(3)`. */
export function expect(received: unknown): any {
  const site = new Error('expect');
  const refuse = (message: string): never => {
    const error = new AssertionError(message, undefined, show(received));
    error.stack = String(site.stack);
    throw error;
  };
  const promise = (): PromiseLike<unknown> => (isThenable(received) ? received : refuse(`expected ${show(received)} to be a promise`));
  const resolved = async () => {
    try {
      return await promise();
    } catch (error) {
      return error instanceof AssertionError ? Promise.reject(error) : refuse(`expected the promise to resolve, but it was rejected with ${show(error)}`);
    }
  };
  const rejected = async () => {
    let value: unknown;
    try {
      value = await promise();
    } catch (error) {
      return error instanceof AssertionError ? Promise.reject(error) : new Rejection(error);
    }
    return refuse(`expected the promise to be rejected, but it resolved to ${show(value)}`);
  };
  return {
    ...now(received, false, site),
    not: now(received, true, site),
    resolves: { ...later(resolved, false, site), not: later(resolved, true, site) },
    rejects: { ...later(rejected, false, site), not: later(rejected, true, site) },
  };
}
