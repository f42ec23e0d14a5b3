/** What executes SQL for the kernel: the application's own connection. */

import type { HostDialect } from '../protocol.gen.js';

/** The SQL that a database understands. */
export type SqlDialect = HostDialect;

/** A parameter of a statement. Lists and objects are JSON, or an array where PostgreSQL expects one. */
export type SqlParameter = null | boolean | number | bigint | string | Uint8Array | Date | SqlParameter[] | object;

/** A value of a row. It has an exact JSON form: see `toJsonValue`. */
export type SqlRow = Record<string, unknown>;

/** The result of a statement. */
export interface SqlRows {
  columns: string[];
  rows: SqlRow[];
  /** Rows that were inserted, updated or deleted. */
  changed: number;
  /** There were more rows than asked for. */
  truncated: boolean;
}

/** A statement that the kernel has an executor run. */
export interface SqlStatement {
  /** With the place holders of the dialect: `?` for sqlite and mysql, `$1` for postgresql. */
  sql: string;
  parameters: readonly SqlParameter[];
  /** Rows beyond this number are not wanted. */
  maxRows: number;
  signal?: AbortSignal | undefined;
}

/** A transaction of an executor. */
export interface SqlTransaction {
  execute(statement: SqlStatement): Promise<SqlRows>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** `name` is an identifier that the kernel has chosen. Without it a statement that fails ends the transaction. */
  savepoint?(action: 'set' | 'release' | 'rollback', name: string): Promise<void>;
}

/** Executes SQL on a connection of the application. */
export interface SqlExecutor {
  readonly dialect: SqlDialect;
  /** The database itself keeps a transaction that was begun with `readOnly` from writing. */
  readonly readOnly?: boolean;
  /** Its transactions have savepoints. */
  readonly savepoints?: boolean;
  /** One statement outside of a transaction. */
  execute(statement: SqlStatement): Promise<SqlRows>;
  /** Without it, each statement is on its own and stays when a run fails. */
  begin?(options: { readOnly: boolean; signal?: AbortSignal | undefined }): Promise<SqlTransaction>;
}

/** The simplest executor: rows for a statement. It has no transactions. */
export interface SqlFunction {
  (sql: string, parameters: any[]): Promise<readonly object[]> | readonly object[];
  dialect?: SqlDialect;
}
