/** SQLite through `better-sqlite3` or `node:sqlite`. Both work on one connection, without waiting. */

import { TGPError } from '../errors.js';
import type { SqlExecutor, SqlParameter, SqlRow, SqlRows, SqlStatement, SqlTransaction } from './executor.js';
import { Mutex } from './mutex.js';
import { sqlError, toJsonValue } from './values.js';

/** What is used of a `Database` of `better-sqlite3`. */
export interface BetterSqliteDatabase {
  prepare(sql: string): any;
  exec(sql: string): unknown;
  pragma(source: string, options?: any): unknown;
  readonly inTransaction: boolean;
}

/** What is used of a `DatabaseSync` of `node:sqlite`. */
export interface NodeSqliteDatabase {
  prepare(sql: string): any;
  exec(sql: string): void;
  /** Node 22.16 and newer. */
  readonly isTransaction?: boolean;
}

/** Another connection writes, or has written since this transaction began to read. */
const RETRY = ['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_LOCKED'];

/** A prepared statement, the same for both packages. */
interface Prepared {
  /** Empty when the statement returns no rows. */
  columns: string[];
  rows(parameters: unknown[]): Iterable<unknown[]>;
  run(parameters: unknown[]): number;
}

interface Driver {
  prepare(sql: string): Prepared;
  exec(sql: string): void;
  isInTransaction(): boolean;
}

/** Executes SQL with a `Database` of `better-sqlite3`. */
export function betterSqliteExecutor(database: BetterSqliteDatabase): SqlExecutor {
  return sqliteExecutor({
    exec: (sql) => void database.exec(sql),
    isInTransaction: () => database.inTransaction,
    prepare(sql) {
      const statement = database.prepare(sql);
      if (!statement.reader) {
        const run = (parameters: unknown[]): number => Number(statement.run(...parameters).changes);
        return { columns: [], rows: () => [], run };
      }
      statement.safeIntegers(true).raw(true);
      const columns = statement.columns().map((column: { name: string }) => column.name);
      return { columns, rows: (parameters) => statement.iterate(...parameters), run: () => 0 };
    },
  });
}

/** Executes SQL with a `DatabaseSync` of `node:sqlite`. */
export function nodeSqliteExecutor(database: NodeSqliteDatabase): SqlExecutor {
  return sqliteExecutor({
    exec: (sql) => database.exec(sql),
    isInTransaction: () => database.isTransaction ?? false,
    prepare(sql) {
      const statement = database.prepare(sql);
      const columns: string[] = statement.columns().map((column: { name: string }) => column.name);
      if (columns.length === 0) {
        const run = (parameters: unknown[]): number => Number(statement.run(...parameters).changes);
        return { columns, rows: () => [], run };
      }
      statement.setReadBigInts(true);
      return { columns, rows: (parameters) => values(statement.iterate(...parameters), columns), run: () => 0 };
    },
  });
}

function* values(rows: Iterable<Record<string, unknown>>, columns: string[]): Iterable<unknown[]> {
  for (const row of rows) {
    yield columns.map((column) => row[column]);
  }
}

function sqliteExecutor(driver: Driver): SqlExecutor {
  const mutex = new Mutex();
  const acquire = async (): Promise<() => void> => {
    const release = await mutex.acquire();
    if (driver.isInTransaction()) {
      release();
      throw new TGPError('ESQL', 'the connection is in a transaction of the application', {
        help: 'give the kernel a connection of its own to the same file',
      });
    }
    return release;
  };
  return {
    dialect: 'sqlite',
    readOnly: true,
    savepoints: true,
    async execute(statement) {
      const release = await acquire();
      try {
        return run(driver, statement);
      } finally {
        release();
      }
    },
    async begin({ readOnly }) {
      const release = await acquire();
      try {
        // `query_only` is a setting of the connection; it is lifted before another transaction begins.
        command(driver, `PRAGMA query_only = ${readOnly ? 'ON' : 'OFF'}`);
        command(driver, 'BEGIN');
      } catch (error) {
        release();
        throw error;
      }
      return transaction(driver, readOnly, release);
    },
  };
}

function transaction(driver: Driver, readOnly: boolean, release: () => void): SqlTransaction {
  const finish = async (sql: string): Promise<void> => {
    try {
      // SQLite itself ends a transaction after some errors, such as a full disk.
      if (sql === 'COMMIT' || driver.isInTransaction()) {
        command(driver, sql);
      }
    } catch (error) {
      if (driver.isInTransaction()) {
        command(driver, 'ROLLBACK');
      }
      throw error;
    } finally {
      if (readOnly) {
        command(driver, 'PRAGMA query_only = OFF');
      }
      release();
    }
  };
  return {
    execute: async (statement) => run(driver, statement),
    commit: () => finish('COMMIT'),
    rollback: () => finish('ROLLBACK'),
    async savepoint(action, name) {
      const verbs = { set: 'SAVEPOINT', release: 'RELEASE', rollback: 'ROLLBACK TO' } as const;
      command(driver, `${verbs[action]} "${name.replaceAll('"', '""')}"`);
    },
  };
}

function command(driver: Driver, sql: string): void {
  try {
    driver.exec(sql);
  } catch (error) {
    throw sqlError(withCode(error), RETRY);
  }
}

function run(driver: Driver, { sql, parameters, maxRows }: SqlStatement): SqlRows {
  try {
    const statement = driver.prepare(sql);
    const bound = parameters.map(toDriver);
    const { columns } = statement;
    if (columns.length === 0) {
      return { columns, rows: [], changed: statement.run(bound), truncated: false };
    }
    const before = totalChanges(driver);
    const rows: SqlRow[] = [];
    let truncated = false;
    // SQLite makes all changes before the first row, so that rows which are not wanted need not be read.
    for (const values of statement.rows(bound)) {
      if (rows.length >= maxRows) {
        truncated = true;
        break;
      }
      rows.push(Object.fromEntries(columns.map((column, at) => [column, toJsonValue(values[at])])));
    }
    return { columns, rows, changed: totalChanges(driver) - before, truncated };
  } catch (error) {
    throw sqlError(withCode(error), RETRY);
  }
}

function totalChanges(driver: Driver): number {
  const [row] = [...driver.prepare('SELECT total_changes()').rows([])];
  return Number(row?.[0] ?? 0);
}

/** `node:sqlite` has the result code as a number; its names are those of `better-sqlite3`. */
function withCode(error: unknown): unknown {
  const { errcode } = (error ?? {}) as { errcode?: unknown };
  const names: Readonly<Record<number, string>> = {
    5: 'SQLITE_BUSY',
    6: 'SQLITE_LOCKED',
    8: 'SQLITE_READONLY',
    19: 'SQLITE_CONSTRAINT',
    517: 'SQLITE_BUSY_SNAPSHOT',
  };
  if (typeof errcode !== 'number' || !(error instanceof Error)) {
    return error;
  }
  return { message: error.message, code: names[errcode] ?? names[errcode & 0xff] ?? `SQLITE_${errcode}` };
}

function toDriver(value: SqlParameter): unknown {
  switch (typeof value) {
    case 'boolean':
      return value ? 1 : 0;
    case 'number':
      // The packages bind numbers as REAL.
      return Number.isSafeInteger(value) ? BigInt(value) : value;
    case 'object':
      if (value === null || value instanceof Uint8Array) {
        return value;
      }
      return value instanceof Date ? value.toISOString() : JSON.stringify(value);
    default:
      return value;
  }
}
