/** MySQL and MariaDB through the package `mysql2`, with or without `mysql2/promise`: a pool, or a connection of its own. */

import type { TGPError } from '../errors.js';
import type { SqlExecutor, SqlParameter, SqlRow, SqlRows, SqlStatement, SqlTransaction } from './executor.js';
import { Mutex } from './mutex.js';
import { integer, isoTimestamp, sqlError, toJsonValue } from './values.js';

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
  columnType?: number;
}

/** A pool or a connection of `mysql2`. */
export interface MysqlSource {
  query(...args: any[]): any;
  execute(...args: any[]): any;
  getConnection?(...args: any[]): any;
}

/** Deadlock and lock wait timeout. */
const RETRY = ['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT'];
/** Values as the server writes them, whatever the settings of the connection are. */
const EXACT = {
  rowsAsArray: true,
  typeCast: true,
  supportBigNumbers: true,
  bigNumberStrings: true,
  decimalNumbers: false,
  dateStrings: true,
};
/** The statement cannot be prepared. */
const NOT_PREPARABLE = 1295;

/** Executes SQL with a pool or a connection of `mysql2`. */
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
    async savepoint(action, name) {
      const verbs = { set: 'SAVEPOINT', release: 'RELEASE SAVEPOINT', rollback: 'ROLLBACK TO SAVEPOINT' } as const;
      try {
        await command(core, `${verbs[action]} \`${name.replaceAll('`', '``')}\``);
      } catch (error) {
        // `CREATE TABLE` and similar statements commit by themselves, which leaves no savepoint to release.
        if (action !== 'release' || (error as TGPError).details['sqlCode'] !== 'ER_SP_DOES_NOT_EXIST') {
          throw error;
        }
      }
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
  const options = { ...EXACT, sql, values: parameters.map(toDriver) };
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
    let fields: Field[] = [];
    let changed = 0;
    let seen = 0;
    let failure: unknown;
    const rows: SqlRow[] = [];
    emitter
      .on('fields', (given) => {
        fields = given ?? [];
      })
      .on('result', (row) => {
        if (!Array.isArray(row)) {
          changed = Number((row as { affectedRows?: unknown }).affectedRows ?? 0);
          return;
        }
        seen += 1;
        if (seen <= maxRows) {
          rows.push(Object.fromEntries(fields.map(({ name, columnType }, at) => [name, toJson(row[at], columnType)])));
        }
      })
      .on('error', (error) => {
        failure = error;
        reject(sqlError(error, RETRY));
      })
      .on('end', () => {
        if (failure === undefined) {
          const columns = fields.map((field) => field.name);
          resolve({ columns, rows, changed, truncated: seen > maxRows });
        }
      });
  });
}

/** Types by their number in the protocol of MySQL. */
const TIMESTAMP = 7;
const LONGLONG = 8;
const DATETIME = 12;

function toJson(value: unknown, type: number | undefined): unknown {
  if (typeof value === 'string') {
    switch (type) {
      case LONGLONG:
        return integer(value);
      case DATETIME:
        return isoTimestamp(value);
      case TIMESTAMP:
        // The zone of the transaction is UTC.
        return `${isoTimestamp(value)}Z`;
      default:
    }
  }
  return toJsonValue(value);
}

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
