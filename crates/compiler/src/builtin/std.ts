/**
 * `@tgp/std`: small pure functions that many tools need.
 *
 * Nothing here changes its arguments, keeps state or looks at the clock.
 */

// Natives of the engine: the rows, and the records, of a text and a separator; undefined when a quoted field is not closed.
import { csvRecords, csvRows } from 'tgp:csv';

type Key = string | number;

/** Splits `items` into groups of `size`; the last one may be shorter. */
export function chunk<Item>(items: readonly Item[], size: number): Item[][] {
  if (!Number.isInteger(size) || size < 1) throw new RangeError('chunk: size must be a whole number above 0');
  return range(Math.ceil(items.length / size)).map((index) => items.slice(index * size, (index + 1) * size));
}

/** The items by the key that `key` gives each of them, in their order. */
export function groupBy<Item>(items: readonly Item[], key: (item: Item) => Key): Record<string, Item[]> {
  const groups = new Map<string, Item[]>();
  items.forEach((item) => {
    const name = String(key(item));
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  });
  return Object.fromEntries(groups);
}

/** The last item for each key. */
export function keyBy<Item>(items: readonly Item[], key: (item: Item) => Key): Record<string, Item> {
  return Object.fromEntries(items.map((item) => [String(key(item)), item]));
}

/** How many items have each key. */
export function countBy<Item>(items: readonly Item[], key: (item: Item) => Key): Record<string, number> {
  const counts = new Map<string, number>();
  items.forEach((item) => {
    const name = String(key(item));
    counts.set(name, (counts.get(name) ?? 0) + 1);
  });
  return Object.fromEntries(counts);
}

/** The items without repetitions; `key` says what counts as the same. */
export function uniq<Item>(items: readonly Item[], key: (item: Item) => unknown = (item) => item): Item[] {
  const seen = new Set<unknown>();
  return items.filter((item) => {
    const name = key(item);
    return seen.has(name) ? false : Boolean(seen.add(name));
  });
}

/** The items for which `test` holds, and the others. */
export function partition<Item>(items: readonly Item[], test: (item: Item) => boolean): [Item[], Item[]] {
  const { yes = [], no = [] } = groupBy(items, (item) => (test(item) ? 'yes' : 'no'));
  return [yes, no];
}

/** A sorted copy. Several keys decide in their order; `descending` turns it round. */
export function sortBy<Item>(
  items: readonly Item[],
  keys: ((item: Item) => Key | bigint | boolean | Date) | ((item: Item) => Key | bigint | boolean | Date)[],
  { descending = false }: { descending?: boolean } = {},
): Item[] {
  const by = Array.isArray(keys) ? keys : [keys];
  const sign = descending ? -1 : 1;
  // Each key is asked once for each item, and not again in every comparison.
  const present = items.filter((item) => item !== undefined);
  const keyed = present.map((item) => ({ item, values: by.map((key) => comparable(key(item))) as number[] }));
  keyed.sort(({ values: left }, { values: right }) => {
    for (let index = 0; index < by.length; index++) {
      const one = left[index] as number;
      const other = right[index] as number;
      if (one < other) return -sign;
      if (one > other) return sign;
    }
    return 0;
  });
  // As everywhere in the language, what is undefined comes last.
  const missing = Array.from({ length: items.length - present.length }, () => undefined as Item);
  return [...keyed.map(({ item }) => item), ...missing];
}

const comparable = (value: unknown): unknown => (value instanceof Date ? value.getTime() : value);

/** Pairs the items of two lists; the longer one is cut. */
export function zip<One, Other>(ones: readonly One[], others: readonly Other[]): [One, Other][] {
  return range(Math.min(ones.length, others.length)).map((index) => [ones[index] as One, others[index] as Other]);
}

/** `range(3)` is 0, 1, 2; `range(1, 4)` is 1, 2, 3; the step may be negative. */
export function range(start: number, end?: number, step = 1): number[] {
  const [from, to] = end === undefined ? [0, start] : [start, end];
  if (step === 0) throw new RangeError('range: step must not be 0');
  const length = Math.max(0, Math.ceil((to - from) / step));
  return Array.from({ length }, (_, index) => from + index * step);
}

/** The sum; 0 for nothing. */
export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The arithmetic mean; `undefined` for nothing. */
export function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : sum(values) / values.length;
}

/** The middle value; `undefined` for nothing. */
export function median(values: readonly number[]): number | undefined {
  return quantile(values, 0.5);
}

/** The value below which the fraction `share` of the values lies, interpolated; `undefined` for nothing. */
export function quantile(values: readonly number[], share: number): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((one, other) => one - other);
  const place = clamp(share, 0, 1) * (sorted.length - 1);
  const below = sorted[Math.floor(place)] as number;
  const above = sorted[Math.ceil(place)] as number;
  return below + (above - below) * (place - Math.floor(place));
}

/** The value, not below `low` and not above `high`. */
export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** Rounded to `digits` decimal places, halves away from zero. */
export function round(value: number, digits = 0): number {
  const shifted = Number(`${Math.abs(value)}e${digits}`);
  const rounded = Number(`${Math.round(shifted)}e${-digits}`);
  return Number.isFinite(rounded) ? Math.sign(value) * rounded : value;
}

/** Only the named properties, those that exist. */
export function pick<Value extends object, Name extends keyof Value>(
  value: Value,
  names: readonly Name[],
): Pick<Value, Name> {
  const kept = names.filter((name) => Object.hasOwn(value, name)).map((name) => [name, value[name]]);
  return Object.fromEntries(kept) as Pick<Value, Name>;
}

/** Everything but the named properties. */
export function omit<Value extends object, Name extends keyof Value>(
  value: Value,
  names: readonly Name[],
): Omit<Value, Name> {
  const left = new Set<string>(names as readonly string[]);
  const kept = Object.entries(value).filter(([name]) => !left.has(name));
  return Object.fromEntries(kept) as Omit<Value, Name>;
}

/** A new object with every value changed. */
export function mapValues<Value, Result>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value, key: string) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}

/** Whether two values have the same structure: plain objects, arrays, dates, maps, sets and primitives. */
export function deepEqual(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (one instanceof Date && other instanceof Date) return one.getTime() === other.getTime();
  if (one instanceof Map && other instanceof Map) return deepEqual([...one], [...other]);
  if (one instanceof Set && other instanceof Set) return deepEqual([...one], [...other]);
  const [left, right] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && deepEqual(left[name], right[name]))
  );
}

/** Lower-case words joined by `-`, accents removed: `Crème brûlée!` becomes `creme-brulee`. */
export function slugify(text: string, separator = '-'): string {
  return words(text.normalize('NFKD').replace(/\p{M}/gu, '')).join(separator).toLowerCase();
}

/** The words of a text: `fooBar baz_qux` has `foo`, `Bar`, `baz` and `qux`. */
export function words(text: string): string[] {
  return text.replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2').match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The first letter in upper case. */
export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** At most `length` characters; what is cut is marked by `mark`. */
export function truncate(text: string, length: number, mark = '…'): string {
  const characters = [...text];
  return characters.length <= length ? text : characters.slice(0, Math.max(0, length - mark.length)).join('') + mark;
}

/** The rows of a CSV text (RFC 4180): quoted fields may hold separators, quotes and line ends. */
export function parseCsvRows(text: string, { separator = ',' }: { separator?: string } = {}): string[][] {
  return closed(csvRows(withoutMark(text), splitter(separator)));
}

/** The records of a CSV text whose first row names the columns. */
export function parseCsv(text: string, options: { separator?: string } = {}): Record<string, string>[] {
  const { separator = ',' } = options;
  return closed(csvRecords(withoutMark(text), splitter(separator)));
}

const withoutMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);

// Only a single character separates.
const splitter = (separator: string): string => (separator.length === 1 ? separator : '');

function closed<Rows>(rows: Rows | undefined): Rows {
  if (rows === undefined) throw new SyntaxError('parseCsv: a quoted field is not closed');
  return rows;
}

/** A CSV text of records. The columns are those of the first record unless they are named. */
export function toCsv(
  records: readonly Readonly<Record<string, unknown>>[],
  { columns = Object.keys(records[0] ?? {}), separator = ',' }: { columns?: readonly string[]; separator?: string } = {},
): string {
  const field = (value: unknown): string => {
    const text = value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
    const plain = !text.includes(separator) && !/["\r\n]/.test(text);
    return plain ? text : `"${text.replaceAll('"', '""')}"`;
  };
  const rows = records.map((record) => columns.map((name) => field(record[name])).join(separator));
  return [columns.map(field).join(separator), ...rows].join('\n');
}
