/** Serves the SQL requests of the kernel with the executor of the application. */

import { TGPError } from '../errors.js';
import type { Log } from '../logger.js';
import type {
  HostSql,
  SqlBeginParams,
  SqlEndParams,
  SqlExecuteParams,
  SqlExecuteResult,
  SqlSavepointParams,
} from '../protocol.gen.js';
import { checkBegun, checkRows } from './check.js';
import type { UndeterminedExecutor } from './detect.js';
import type { SqlExecutor, SqlTransaction } from './executor.js';
import { parameterFromJson, sqlError } from './values.js';

/** Transactions that are open at a time. */
const MAX_TRANSACTIONS = 256;

export class SqlService {
  readonly executor: SqlExecutor | UndeterminedExecutor;
  readonly #log: Log;
  readonly #transactions = new Map<number, SqlTransaction>();
  #hasWarned = false;

  constructor(executor: SqlExecutor | UndeterminedExecutor, log: Log) {
    this.executor = executor;
    this.#log = log;
  }

  /** What the kernel is told about the executor. */
  async capabilities(): Promise<HostSql> {
    const { executor } = this;
    const dialect = executor.dialect ?? (await this.#ask(executor as UndeterminedExecutor));
    const transactions = executor.begin !== undefined;
    if (!transactions && !this.#hasWarned) {
      // A kernel that is started again has the same executor.
      this.#hasWarned = true;
      this.#log.write('warn', 'the SQL executor has no transactions: each statement is on its own and stays when a run fails');
    }
    return {
      dialect,
      transactions,
      readOnly: transactions && executor.readOnly === true,
      savepoints: transactions && executor.savepoints === true,
    };
  }

  async begin({ transaction, readOnly }: SqlBeginParams, signal: AbortSignal): Promise<object> {
    const { begin } = this.executor;
    if (begin === undefined) {
      throw new TGPError('ECAPABILITY', 'the SQL executor of this application has no transactions');
    }
    if (this.#transactions.size >= MAX_TRANSACTIONS) {
      throw new TGPError('EBUDGET', `more than ${MAX_TRANSACTIONS} SQL transactions are open`);
    }
    const begun = await this.#driver(() => begin.call(this.executor, { readOnly, signal }));
    checkBegun(this.executor, begun);
    if (signal.aborted) {
      await this.#rollback(begun);
      throw new TGPError('ESQL', 'the transaction was cancelled before it began');
    }
    this.#transactions.set(transaction, begun);
    return {};
  }

  async execute(params: SqlExecuteParams, signal: AbortSignal): Promise<SqlExecuteResult> {
    const { sql, maxRows } = params;
    const parameters = params.parameters.map(parameterFromJson);
    const target = this.executor.begin === undefined ? this.executor : this.#transaction(params.transaction);
    const rows = await this.#driver(() => target.execute({ sql, parameters, maxRows, signal }));
    checkRows(this.executor, rows);
    return { columns: rows.columns, rows: rows.rows, changed: rows.changed, truncated: rows.truncated };
  }

  async savepoint({ transaction, action, name }: SqlSavepointParams): Promise<object> {
    const target = this.#transaction(transaction);
    if (target.savepoint === undefined) {
      throw new TGPError('ECAPABILITY', 'the SQL executor of this application has no savepoints');
    }
    await this.#driver(async () => target.savepoint?.(action, name));
    return {};
  }

  async end({ transaction, commit }: SqlEndParams): Promise<object> {
    const target = this.#transaction(transaction);
    this.#transactions.delete(transaction);
    await this.#driver(() => (commit ? target.commit() : target.rollback()));
    return {};
  }

  /** The kernel is gone: nothing that it has begun is kept. */
  async rollbackAll(): Promise<void> {
    const open = [...this.#transactions.values()];
    this.#transactions.clear();
    await Promise.all(open.map((transaction) => this.#rollback(transaction)));
  }

  async #rollback(transaction: SqlTransaction): Promise<void> {
    try {
      await transaction.rollback();
    } catch (error) {
      this.#log.write('error', `cannot roll back a transaction: ${sqlError(error).message}`);
    }
  }

  async #ask(executor: UndeterminedExecutor): Promise<HostSql['dialect']> {
    const dialect = await executor.ask();
    if (dialect === undefined) {
      this.#log.write('warn', 'the dialect of the SQL function is not known; `sqlite` is assumed. Set its property `dialect`');
    }
    executor.dialect = dialect ?? 'sqlite';
    return executor.dialect;
  }

  #transaction(number: number): SqlTransaction {
    const transaction = this.#transactions.get(number);
    if (transaction === undefined) {
      throw new TGPError('ESQL', `the SQL transaction ${number} is not open`);
    }
    return transaction;
  }

  async #driver<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw sqlError(error);
    }
  }
}
