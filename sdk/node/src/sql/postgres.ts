/** PostgreSQL through the package `pg`: a `Pool`, or a `Client` of its own. */

import type { SqlExecutor, SqlParameter, SqlRow, SqlRows, SqlStatement, SqlTransaction } from './executor.js';
import { Mutex } from './mutex.js';
import { integer, isoTimestamp, sqlError, toJsonValue } from './values.js';

/** What is used of a `Client` of `pg`. */
export interface PgClient {
  query(...args: any[]): any;
  release?(destroy?: boolean | Error): void;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error', listener: (error: Error) => void): unknown;
}

/** What is used of a `Pool` of `pg`. */
export interface PgPool {
  connect(): Promise<PgClient>;
  query(...args: any[]): any;
  readonly totalCount: number;
}

/** Serialization failure, deadlock, lock not available. */
const RETRY = ['40001', '40P01', '55P03'];

/** Times are ISO 8601 in UTC, whatever the settings of the connection are; the end of the transaction restores them. */
const EXACT_TEXT = "SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL bytea_output = 'hex'";

type Parser = (text: string) => unknown;

/** Types whose usual form in JavaScript loses digits or the time zone, by their number in PostgreSQL. */
const PARSERS: Readonly<Record<number, Parser>> = {
  16: (text) => text === 't',
  17: (text) => bytesToBase64(text),
  20: integer,
  21: Number,
  23: Number,
  26: Number,
  700: (text) => toJsonValue(Number(text)),
  701: (text) => toJsonValue(Number(text)),
  114: (text) => JSON.parse(text) as unknown,
  3802: (text) => JSON.parse(text) as unknown,
  1114: isoTimestamp,
  1184: isoTimestamp,
};

/** Types that the driver reads as lists of texts, numbers or booleans. */
const keepText: Parser = (text) => text;

/** Executes SQL with a `Pool` or a `Client` of `pg`. */
export function postgresExecutor(source: PgPool | PgClient): SqlExecutor {
  const acquire = isPool(source) ? fromPool(source) : fromClient(source);
  return {
    dialect: 'postgresql',
    readOnly: true,
    savepoints: true,
    async execute(statement) {
      const { client, release } = await acquire();
      try {
        return await run(client, statement);
      } finally {
        release();
      }
    },
    async begin({ readOnly }) {
      const { client, release } = await acquire();
      try {
        await command(client, `${readOnly ? 'BEGIN READ ONLY' : 'BEGIN'}; ${EXACT_TEXT}`);
      } catch (error) {
        release(true);
        throw error;
      }
      return transaction(client, release);
    },
  };
}

function transaction(client: PgClient, release: (destroy?: boolean) => void): SqlTransaction {
  const finish = async (sql: string): Promise<void> => {
    try {
      await command(client, sql);
      release();
    } catch (error) {
      // The state of the connection is not known: it must not serve anything else.
      release(true);
      throw error;
    }
  };
  return {
    execute: (statement) => run(client, statement),
    commit: () => finish('COMMIT'),
    rollback: () => finish('ROLLBACK'),
    savepoint(action, name) {
      const verbs = { set: 'SAVEPOINT', release: 'RELEASE SAVEPOINT', rollback: 'ROLLBACK TO SAVEPOINT' } as const;
      return command(client, `${verbs[action]} "${name.replaceAll('"', '""')}"`);
    },
  };
}

interface Lease {
  client: PgClient;
  release(destroy?: boolean): void;
}

function isPool(source: PgPool | PgClient): source is PgPool {
  return 'totalCount' in source;
}

function fromPool(pool: PgPool): () => Promise<Lease> {
  return async () => {
    try {
      const client = await pool.connect();
      // A lost connection fails its statement; without a listener it would also end the application.
      client.on?.('error', ignore);
      const release = (destroy?: boolean): void => {
        client.removeListener?.('error', ignore);
        client.release?.(destroy);
      };
      return { client, release };
    } catch (error) {
      throw sqlError(error);
    }
  };
}

const ignore = (): void => {};

/** One connection has one transaction at a time. */
function fromClient(client: PgClient): () => Promise<Lease> {
  const mutex = new Mutex();
  return async () => ({ client, release: await mutex.acquire() });
}

async function command(client: PgClient, sql: string): Promise<void> {
  try {
    await client.query(sql);
  } catch (error) {
    throw sqlError(error, RETRY);
  }
}

interface PgQuery {
  on(event: 'row', listener: (row: unknown[], result: PgResult) => void): void;
  on(event: 'end', listener: (result: PgResult) => void): void;
  on(event: 'error', listener: (error: unknown) => void): void;
}

interface PgResult {
  fields: { name: string; dataTypeID: number }[];
  rowCount: number | null;
  command: string;
}

/** Rows come one by one, so that those that are not wanted are not kept. */
function run(client: PgClient, { sql, parameters, maxRows }: SqlStatement): Promise<SqlRows> {
  const Query = (client.constructor as { Query?: new (config: object) => PgQuery }).Query;
  const config = {
    text: sql,
    values: parameters.map(toDriver),
    rowMode: 'array',
    // With parameters or not, the extended protocol takes exactly one statement.
    queryMode: 'extended',
    types: { getTypeParser: (oid: number, format?: string) => parserOf(client, oid, format) },
  };
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => reject(sqlError(error, RETRY));
    if (Query === undefined) {
      const answer = client.query(config) as Promise<PgResult & { rows: unknown[][] }>;
      answer.then((result) => resolve(toRows(result, result.rows, maxRows)), fail);
      return;
    }
    const kept: unknown[][] = [];
    const query = new Query(config);
    query.on('row', (row) => {
      if (kept.length <= maxRows) {
        kept.push(row);
      }
    });
    query.on('error', fail);
    query.on('end', (result) => resolve(toRows(result, kept, maxRows)));
    client.query(query);
  });
}

function toRows(result: PgResult, rows: unknown[][], maxRows: number): SqlRows {
  const columns = (result.fields ?? []).map((field) => field.name);
  const wanted = rows.slice(0, maxRows).map((values): SqlRow => {
    return Object.fromEntries(columns.map((column, at) => [column, toJsonValue(values[at])]));
  });
  const isChange = ['INSERT', 'UPDATE', 'DELETE', 'MERGE', 'COPY'].includes(result.command);
  return { columns, rows: wanted, changed: isChange ? (result.rowCount ?? 0) : 0, truncated: rows.length > maxRows };
}

function parserOf(client: PgClient, oid: number, format: string | undefined): Parser {
  const own = PARSERS[oid];
  if (own !== undefined) {
    return own;
  }
  const { getTypeParser } = client as { getTypeParser?: (oid: number, format?: string) => Parser };
  if (getTypeParser === undefined || !isList(oid)) {
    return keepText;
  }
  return getTypeParser.call(client, oid, format);
}

/** Arrays of texts, integers, booleans, floats and uuids: the driver reads them without loss. */
function isList(oid: number): boolean {
  return [1000, 1005, 1007, 1009, 1015, 1016, 1021, 1022, 1231, 2951].includes(oid);
}

function toDriver(value: SqlParameter): unknown {
  // A list of objects cannot be an array of PostgreSQL, so it is JSON.
  if (Array.isArray(value) && value.some((member) => typeof member === 'object' && member !== null)) {
    return JSON.stringify(value);
  }
  return typeof value === 'bigint' ? value.toString() : value;
}

function bytesToBase64(text: string): string {
  return Buffer.from(text.slice(2), 'hex').toString('base64');
}
