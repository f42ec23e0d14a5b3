/** Makes an executor of what the application has: a pool, a connection, a database, a function, or an executor. */

import { TGPError } from '../errors.js';
import { kindOf } from '../json.js';
import { checkDialect, checkedExecutor, functionName, functionRows } from './check.js';
import type { SqlDialect, SqlExecutor, SqlFunction, SqlRow } from './executor.js';
import { mysqlExecutor, type MysqlSource } from './mysql.js';
import { postgresExecutor, type PgClient, type PgPool } from './postgres.js';
import { betterSqliteExecutor, nodeSqliteExecutor, type BetterSqliteDatabase, type NodeSqliteDatabase } from './sqlite.js';
import { toJsonValue } from './values.js';

/** What `createSqlTools` takes. */
export type SqlSource =
  | SqlExecutor
  | SqlFunction
  | PgPool
  | PgClient
  | MysqlSource
  | BetterSqliteDatabase
  | NodeSqliteDatabase;

/** A function whose dialect is not known until the database was asked. */
export interface UndeterminedExecutor extends Omit<SqlExecutor, 'dialect'> {
  dialect: SqlDialect | undefined;
  ask(): Promise<SqlDialect | undefined>;
}

/** The same source has the same executor, so that binding it twice changes nothing. */
const known = new WeakMap<object, SqlExecutor | UndeterminedExecutor>();

export function sqlExecutor(source: SqlSource): SqlExecutor | UndeterminedExecutor {
  if ((typeof source !== 'object' && typeof source !== 'function') || source === null) {
    throw unknownSource(source);
  }
  let executor = known.get(source);
  if (executor === undefined) {
    executor = makeExecutor(source);
    known.set(source, executor);
    known.set(executor, executor);
  }
  return executor;
}

function makeExecutor(source: SqlSource): SqlExecutor | UndeterminedExecutor {
  if (typeof source === 'function') {
    if (source.dialect !== undefined) {
      checkDialect(source.dialect, functionName(source));
    }
    return functionExecutor(source);
  }
  const has = (...names: string[]): boolean => names.every((name) => name in source);
  if (has('dialect', 'execute')) {
    return checkedExecutor(source as SqlExecutor);
  }
  if (has('prepare', 'pragma')) {
    return betterSqliteExecutor(source as BetterSqliteDatabase);
  }
  if (has('prepare', 'exec')) {
    return nodeSqliteExecutor(source as NodeSqliteDatabase);
  }
  if (has('query', 'execute')) {
    return mysqlExecutor(source as MysqlSource);
  }
  if (has('query', 'connect')) {
    return postgresExecutor(source as PgPool | PgClient);
  }
  throw unknownSource(source);
}

function unknownSource(source: unknown): TGPError {
  return new TGPError('ECONFIG', `${kindOf(source)} is not a database connection that can be used`, {
    help:
      'pass a pool or connection of `pg` or `mysql2`, a database of `better-sqlite3` or `node:sqlite`, ' +
      'a function `(sql, parameters) => rows`, or an object `{ dialect, execute, begin }`',
  });
}

/** What a question to each kind of database returns. PostgreSQL and MySQL have `version()`, SQLite has not. */
async function askDialect(run: SqlFunction): Promise<SqlDialect | undefined> {
  const ask = async (sql: string): Promise<string> => {
    try {
      const [row] = await run(sql, []);
      return String(Object.values(row ?? {})[0] ?? '');
    } catch {
      return '';
    }
  };
  const version = await ask('SELECT version() AS version');
  if (/^\d/.test(version)) {
    return 'mysql';
  }
  if (version !== '') {
    return version.includes('PostgreSQL') ? 'postgresql' : undefined;
  }
  return /^3\./.test(await ask('SELECT sqlite_version() AS version')) ? 'sqlite' : undefined;
}

function functionExecutor(run: SqlFunction): UndeterminedExecutor {
  return {
    dialect: run.dialect,
    ask: () => askDialect(run),
    async execute({ sql, parameters, maxRows }) {
      const rows = functionRows(run, await run(sql, [...parameters]));
      const wanted = rows.slice(0, maxRows).map((row) => toJsonValue(row) as SqlRow);
      const columns = Object.keys(wanted[0] ?? {});
      return { columns, rows: wanted, changed: 0, truncated: rows.length > maxRows };
    },
  };
}
