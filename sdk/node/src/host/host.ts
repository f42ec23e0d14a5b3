/** What the application does for the kernel: approvals, functions, SQL, files. */

import { classAndMessageOf, messageOf, TGPError } from '../errors.js';
import { checkJson } from '../json.js';
import type { Log } from '../logger.js';
import type { TGPOptions } from '../options.js';
import type {
  ApproveParams,
  ApproveResult,
  FileApplyParams,
  FilePathParams,
  HostCallParams,
  HostCallResult,
  HostParams,
  HostTool,
  SqlBeginParams,
  SqlEndParams,
  SqlExecuteParams,
  SqlSavepointParams,
} from '../protocol.gen.js';
import { SqlService } from '../sql/service.js';
import { FileService } from '../vfs/service.js';

type Handler = (params: any, signal: AbortSignal) => Promise<unknown>;

export class Host {
  readonly #options: TGPOptions;
  readonly #files: FileService | undefined;
  readonly #log: Log;
  #sql: SqlService | undefined;

  constructor(options: TGPOptions, log: Log) {
    this.#options = options;
    this.#log = log;
    this.#files = options.vfs === undefined ? undefined : new FileService(options.vfs);
  }

  get sql(): SqlService | undefined {
    return this.#sql;
  }

  bindSql(executor: SqlService['executor']): void {
    this.#sql = new SqlService(executor, this.#log);
  }

  /** What is offered in `initialize`. The kernel asks for nothing else. */
  async params(): Promise<HostParams> {
    const { consent, approve, hostTools } = this.#options;
    const params: HostParams = {
      approves: approve !== undefined,
      files: this.#files !== undefined,
      tools: listHostTools(hostTools),
    };
    if (this.#log.takesKernelLog) {
      params.log = this.#log.level;
    }
    if (consent !== undefined) {
      params.consent = consent;
    }
    if (this.#sql !== undefined) {
      params.sql = await this.#sql.capabilities();
    }
    return params;
  }

  /** Starts the work of a request, or returns nothing if the method is not served. */
  handle(method: string, params: unknown, signal: AbortSignal): Promise<unknown> | undefined {
    const sql = this.#sql;
    const files = this.#files;
    const handlers: Record<string, Handler | false | undefined> = {
      'host/approve': (params: ApproveParams, signal) => this.#approve(params, signal),
      'host/call': (params: HostCallParams, signal) => this.#call(params, signal),
      'host/sql/begin': sql && ((params: SqlBeginParams, signal) => sql.begin(params, signal)),
      'host/sql/execute': sql && ((params: SqlExecuteParams, signal) => sql.execute(params, signal)),
      'host/sql/savepoint': sql && ((params: SqlSavepointParams) => sql.savepoint(params)),
      'host/sql/end': sql && ((params: SqlEndParams) => sql.end(params)),
      'host/files/read': files && ((params: FilePathParams) => files.read(params)),
      'host/files/entry': files && ((params: FilePathParams) => files.entry(params)),
      'host/files/list': files && ((params: FilePathParams) => files.list(params)),
      'host/files/apply': files && ((params: FileApplyParams) => files.apply(params)),
    };
    const handler = Object.hasOwn(handlers, method) && handlers[method];
    return handler ? this.#reported(method, params, signal, handler) : undefined;
  }

  /**
   * Logs where a function of the application threw: the kernel, and so the caller, gets the message alone. A `TGPError` is an
   * answer that the function chose, and a cancelled call is of no more interest.
   */
  async #reported(method: string, params: unknown, signal: AbortSignal, handler: Handler): Promise<unknown> {
    try {
      return await handler(params, signal);
    } catch (error) {
      if (!(error instanceof TGPError || signal.aborted)) {
        const { module, name } = (params ?? {}) as Partial<HostCallParams>;
        const shown = method === 'host/call' ? `host:${module}/${name}` : method.replace('host/', '');
        const stack = error instanceof Error ? (error.stack ?? classAndMessageOf(error)) : String(error);
        this.#log.write('error', `\`${shown}\` of the application threw ${stack}`);
      }
      throw error;
    }
  }

  async #approve(request: ApproveParams, signal: AbortSignal): Promise<ApproveResult> {
    const { approve } = this.#options;
    if (approve === undefined) {
      return { approved: false, reason: 'the application answers no approvals' };
    }
    const answer = await approve(request, { signal });
    // Only `true` agrees: a callback that returns nothing has not agreed.
    if (typeof answer !== 'object' || answer === null) {
      return { approved: answer === true };
    }
    const result: ApproveResult = { approved: answer.approved === true };
    if (answer.reason !== undefined) {
      result.reason = String(answer.reason);
    }
    if (answer.by !== undefined) {
      result.by = String(answer.by);
    }
    return result;
  }

  async #call({ module, name, arguments: args }: HostCallParams, signal: AbortSignal): Promise<HostCallResult> {
    const functions = ownProperty(this.#options.hostTools, module);
    const definition = ownProperty(functions, name);
    if (definition === undefined) {
      throw new TGPError('ENOTFOUND', `the application has no function \`host:${module}/${name}\``, {
        help: 'add it to `hostTools`',
      });
    }
    const result: unknown = await definition.execute(args, { signal });
    checkResult(result);
    return { result: result ?? null };
  }
}

/** What a function returns has to reach the tool as it is. The kernel names the function in the error. */
function checkResult(result: unknown): void {
  if (result === undefined) {
    return;
  }
  try {
    checkJson(result, 'result', { bigint: true });
  } catch (error) {
    // Without a code: the arguments of the call are not at fault.
    throw new TGPError('', messageOf(error), {}, { cause: error });
  }
}

function ownProperty<T>(record: Record<string, T> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}

function listHostTools(hostTools: TGPOptions['hostTools']): HostTool[] {
  return Object.entries(hostTools ?? {}).flatMap(([module, functions]) =>
    Object.entries(functions).map(([name, { description, input, output, effect }]) => {
      const tool: HostTool = { module, name, description };
      if (input !== undefined) {
        tool.inputSchema = input;
      }
      if (output !== undefined) {
        tool.outputSchema = output;
      }
      if (effect !== undefined) {
        tool.effect = effect;
      }
      return tool;
    }),
  );
}
