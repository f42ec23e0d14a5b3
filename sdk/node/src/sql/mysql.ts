/** MySQL and MariaDB through the package `mysql2`, with or without `mysql2/promise`: a pool, or a connection of its own. */

import type { SqlExecutor, SqlParameter, SqlRow, SqlRows, SqlStatement, SqlTransaction } from './executor.js';
import { Mutex } from './mutex.js';
import { integer, isoTimestamp, sqlError } from './values.js';

/** What is used of a connection with callbacks. */
interface Core {
  execute(options: object): Emitter;
  query(options: object): Emitter;
  unprepare?(sql: string): void;
  release?(): void;
  destroy(): void;
}

interface Emitter {
  on(event: 'fields', listener: (fields: Field[] | undefined) => void): this;
  on(event: 'result', listener: (row: unknown) => void): this;
  on(event: 'error', listener: (error: unknown) => void): this;
  on(event: 'end', listener: () => void): this;
}

interface Field {
  name: string;
}

/** A pool or a connection of `mysql2`. */
export interface MysqlSource {
  query(...args: any[]): any;
  execute(...args: any[]): any;
  getConnection?(...args: any[]): any;
}

/** Deadlock and lock wait timeout. */
const RETRY = ['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT'];
/** The statement cannot be prepared. */
const NOT_PREPARABLE = 1295;

export function mysqlExecutor(source: MysqlSource): SqlExecutor {
  const acquire = typeof source.getConnection === 'function' ? fromPool(source) : fromConnection(source);
  return {
    dialect: 'mysql',
    readOnly: true,
    savepoints: true,
    async execute(statement) {
      const { core, release } = await acquire();
      try {
        return await run(core, statement);
      } finally {
        release();
      }
    },
    async begin({ readOnly }) {
      const { core, release } = await acquire();
      try {
        await command(core, "SET @tgp_time_zone = @@session.time_zone, time_zone = '+00:00'");
        await command(core, readOnly ? 'START TRANSACTION READ ONLY' : 'START TRANSACTION');
      } catch (error) {
        release(true);
        throw error;
      }
      return transaction(core, release);
    },
  };
}

function transaction(core: Core, release: (destroy?: boolean) => void): SqlTransaction {
  const finish = async (sql: string): Promise<void> => {
    try {
      await command(core, sql);
      await command(core, 'SET time_zone = @tgp_time_zone');
      release();
    } catch (error) {
      // The state of the connection is not known: it must not serve anything else.
      release(true);
      throw error;
    }
  };
  return {
    execute: (statement) => run(core, statement),
    commit: () => finish('COMMIT'),
    rollback: () => finish('ROLLBACK'),
    savepoint(action, name) {
      const verbs = { set: 'SAVEPOINT', release: 'RELEASE SAVEPOINT', rollback: 'ROLLBACK TO SAVEPOINT' } as const;
      return command(core, `${verbs[action]} \`${name.replaceAll('`', '``')}\``);
    },
  };
}

interface Lease {
  core: Core;
  release(destroy?: boolean): void;
}

/** The promise API wraps the connection and the pool with callbacks. */
function unwrap(source: object): MysqlSource & Core {
  const { connection, pool } = source as { connection?: object; pool?: object };
  const inner = 'promise' in source ? source : (pool ?? connection ?? source);
  return inner as MysqlSource & Core;
}

function fromPool(source: MysqlSource): () => Promise<Lease> {
  const pool = unwrap(source);
  return () =>
    new Promise((resolve, reject) => {
      pool.getConnection?.((error: unknown, connection: Core) => {
        if (error) {
          reject(sqlError(error));
          return;
        }
        resolve({
          core: connection,
          release: (destroy) => (destroy ? connection.destroy() : connection.release?.()),
        });
      });
    });
}

/** One connection has one transaction at a time. */
function fromConnection(source: MysqlSource): () => Promise<Lease> {
  const core = unwrap(source);
  const mutex = new Mutex();
  return async () => ({ core, release: await mutex.acquire() });
}

async function command(core: Core, sql: string): Promise<void> {
  await collect(core.query({ sql }), 0);
}

async function run(core: Core, { sql, parameters, maxRows }: SqlStatement): Promise<SqlRows> {
  const options = { sql, values: parameters.map(toDriver), rowsAsArray: true, typeCast };
  try {
    // A prepared statement: values are never written into the text, and the text is exactly one statement.
    return await collect(core.execute(options), maxRows);
  } catch (error) {
    const cause = (error as { cause?: { errno?: unknown } }).cause;
    if (cause?.errno !== NOT_PREPARABLE || parameters.length > 0) {
      throw error;
    }
    return await collect(core.query(options), maxRows);
  } finally {
    core.unprepare?.(sql);
  }
}

/** Rows come one by one, so that those that are not wanted are not kept. */
function collect(emitter: Emitter, maxRows: number): Promise<SqlRows> {
  return new Promise((resolve, reject) => {
    let columns: string[] = [];
    let changed = 0;
    let seen = 0;
    let failure: unknown;
    const rows: SqlRow[] = [];
    emitter
      .on('fields', (fields) => {
        columns = (fields ?? []).map((field) => field.name);
      })
      .on('result', (row) => {
        if (!Array.isArray(row)) {
          changed = Number((row as { affectedRows?: unknown }).affectedRows ?? 0);
          return;
        }
        seen += 1;
        if (seen <= maxRows) {
          rows.push(Object.fromEntries(columns.map((column, at) => [column, row[at] ?? null])));
        }
      })
      .on('error', (error) => {
        failure = error;
        reject(sqlError(error, RETRY));
      })
      .on('end', () => {
        if (failure === undefined) {
          resolve({ columns, rows, changed, truncated: seen > maxRows });
        }
      });
  });
}

interface TypedField {
  type: string;
  string(encoding?: string): string | null;
  buffer(): Buffer | null;
}

function typeCast(field: TypedField, next: () => unknown): unknown {
  switch (field.type) {
    case 'LONGLONG':
      return map(field.string(), integer);
    case 'DECIMAL':
    case 'NEWDECIMAL':
    case 'DATE':
    case 'NEWDATE':
    case 'TIME':
      return field.string();
    case 'DATETIME':
      return map(field.string(), isoTimestamp);
    case 'TIMESTAMP':
      // The zone of the transaction is UTC.
      return map(field.string(), (text) => `${isoTimestamp(text)}Z`);
    case 'JSON':
      return map(field.string(), (text) => JSON.parse(text) as unknown);
    case 'BIT':
    case 'GEOMETRY':
      return map(field.buffer(), base64);
    default: {
      const value = next();
      return Buffer.isBuffer(value) ? base64(value) : value;
    }
  }
}

function map<T, R>(value: T | null, convert: (value: T) => R): R | null {
  return value === null ? null : convert(value);
}

const base64 = (bytes: Buffer): string => bytes.toString('base64');

function toDriver(value: SqlParameter): unknown {
  switch (typeof value) {
    case 'bigint':
      return value.toString();
    case 'boolean':
      return value ? 1 : 0;
    case 'object': {
      if (value instanceof Date) {
        return value.toISOString().replace('T', ' ').replace('Z', '');
      }
      return value === null || value instanceof Uint8Array ? value : JSON.stringify(value);
    }
    default:
      return value;
  }
}
