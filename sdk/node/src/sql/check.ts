/** What an executor of the application is and returns. A mistake names the executor, and what is expected of it. */

import { isRecord } from '../checks.js';
import { TGPError } from '../errors.js';
import { kindOf } from '../json.js';
import { suggestion } from '../suggest.js';
import type { SqlExecutor } from './executor.js';

const DIALECTS: readonly string[] = ['sqlite', 'postgresql', 'mysql'];
const TRANSACTION = ['execute', 'commit', 'rollback'];

export function checkDialect(dialect: unknown, owner: string): void {
  if (!DIALECTS.includes(dialect as string)) {
    const message = `\`dialect\` of ${owner}: unknown dialect \`${String(dialect)}\``;
    throw new TGPError('ECONFIG', message, { help: suggestion(String(dialect), DIALECTS), field: 'dialect' });
  }
}

/** The fields of an executor that the application wrote itself. */
export function checkedExecutor(executor: SqlExecutor): SqlExecutor {
  checkDialect(executor.dialect, nameOf(executor));
  const isFunction = (value: unknown): boolean => typeof value === 'function';
  for (const name of ['execute', 'begin'] as const) {
    const value: unknown = executor[name];
    if (!isFunction(value) && !(name === 'begin' && value === undefined)) {
      const message = `\`${name}\` of ${nameOf(executor)} is ${kindOf(value)}, expected a function`;
      throw new TGPError('ECONFIG', message, { help: 'pass an object `{ dialect, execute, begin }`', field: name });
    }
  }
  return executor;
}

export function functionName(run: { name: string }): string {
  return run.name === '' ? 'the SQL function' : `the SQL function \`${run.name}\``;
}

/** The rows that a function has returned. */
export function functionRows(run: { name: string }, answer: unknown): readonly object[] {
  const returned = `${functionName(run)} returned`;
  if (!Array.isArray(answer)) {
    throw wrong(`${returned} ${kindOf(answer)}, expected a list of rows`);
  }
  for (const [number, row] of answer.entries()) {
    if (!isRecord(row)) {
      throw wrong(`${returned} ${kindOf(row)} as row ${number}, expected an object with a value for each column`);
    }
  }
  return answer;
}

/** What `begin` has returned. */
export function checkBegun(executor: object, transaction: unknown): void {
  const methods = (transaction ?? {}) as Record<string, unknown>;
  if (!TRANSACTION.every((name) => typeof methods[name] === 'function')) {
    throw wrong(
      `\`begin\` of ${nameOf(executor)} returned ${kindOf(transaction)}, ` +
        'expected a transaction with `execute`, `commit` and `rollback`',
    );
  }
}

/** What `execute` has returned. A field that is not there is empty for the kernel. */
export function checkRows(executor: object, result: unknown): void {
  const returned = `\`execute\` of ${nameOf(executor)} returned`;
  if (!isRecord(result)) {
    throw wrong(`${returned} ${kindOf(result)}, expected an object with \`columns\`, \`rows\`, \`changed\`, \`truncated\``);
  }
  const { columns = [], rows = [], changed = 0, truncated = false } = result;
  for (const [name, value, isRight, expected] of [
    ['columns', columns, Array.isArray(columns), 'a list of names'],
    ['rows', rows, Array.isArray(rows), 'a list'],
    ['changed', changed, typeof changed === 'number', 'a number'],
    ['truncated', truncated, typeof truncated === 'boolean', 'a boolean'],
  ] as const) {
    if (!isRight) {
      throw wrong(`${returned} ${kindOf(value)} as \`${name}\`, expected ${expected}`);
    }
  }
  for (const [number, row] of (rows as unknown[]).entries()) {
    if (!isRecord(row)) {
      throw wrong(`${returned} ${kindOf(row)} as row ${number}, expected an object with a value for each column`);
    }
  }
}

/** An executor of a class has the name of the class. */
function nameOf(executor: object): string {
  const name: unknown = Object.getPrototypeOf(executor)?.constructor?.name;
  return typeof name === 'string' && name !== 'Object' && name !== '' ? `the SQL executor \`${name}\`` : 'the SQL executor';
}

function wrong(message: string): TGPError {
  return new TGPError('ESQL', message, { help: 'correct the executor: the documentation of the client has its form' });
}
