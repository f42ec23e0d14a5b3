/** The kernel as the application sees it. */

import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

import { checkOptions } from './checked-options.js';
import { checkNames } from './checks.js';
import { DEFINITIONS_HASH, GENERATED_WITH, STATIC_PROMPT } from './definitions.gen.js';
import { errorFromWire, shutDownError, TGPError } from './errors.js';
import { Host } from './host/host.js';
import { checkJson, kindOf } from './json.js';
import { Log } from './logger.js';
import type { TGPOptions } from './options.js';
import { checkIsTgp, findBinary } from './process/binary.js';
import { KernelProcess } from './process/kernel-process.js';
import type {
  InitializeParams,
  InitializeResult,
  LogParams,
  PromptGetResult,
  SessionEvent,
  SessionRunParams,
  SessionRunResult,
  ToolInfo,
  ToolsCallParams,
  ToolsCallResult,
  ToolsListResult,
} from './protocol.gen.js';
import { addKernel, removeKernel } from './registry.js';
import { SessionRun, type RunOptions, type SessionRunEvent } from './session.js';
import { sqlExecutor, type SqlSource } from './sql/detect.js';
import { VERSION } from './version.js';

const PROTOCOL_VERSION = 1;
const BOOT_TIMEOUT_MS = 120_000;
const BOOT_HELP = '`tgp doctor` checks this machine; allow more time if tools are pulled from a slow remote';
/** How long `shutdown()` waits for calls that are under way. */
const SHUTDOWN_MS = 60_000;

/** How a call is made. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Show what would happen and change nothing. */
  dryRun?: boolean | undefined;
}

/** Limits of one run. Higher ones than those of the configuration need an approval. */
export interface ExecLimits {
  cpuMs?: number;
  wallMs?: number;
  memoryMb?: number;
}

/** How a forged tool is run. */
export interface ExecOptions extends CallOptions {
  limits?: ExecLimits | undefined;
}

const CALL_OPTIONS = ['signal', 'dryRun'];
const EXEC_OPTIONS = [...CALL_OPTIONS, 'limits'];
const RUN_OPTIONS = ['task', 'provider', 'model', 'maxSteps', 'consent', 'signal'];

/** A process of the kernel that has booted. */
interface Booted {
  process: KernelProcess;
  info: InitializeResult;
}

/**
 * A kernel. It is usable right after its construction: the process is started by the first call, or by `boot()`. A process
 * that has ended is started again by the next call.
 */
export class TGP implements AsyncDisposable {
  readonly #options: TGPOptions;
  readonly #log: Log;
  readonly #host: Host;
  readonly #sessions = new Map<number, (event: SessionRunEvent) => void>();
  #booted: Promise<Booted> | undefined;
  /** Resolve when a call that has begun was sent; a process is shut down after that. */
  readonly #unsent = new Set<Promise<void>>();
  /** The process before this one, which finishes its calls. */
  #retired: Promise<void> = Promise.resolve();
  #info: InitializeResult | undefined;
  #isShutDown = false;

  /** Throws `ECONFIG` for an option that does not exist or cannot be used. */
  constructor(options: TGPOptions = {}) {
    checkOptions(options);
    this.#options = { ...options };
    this.#log = new Log(options.logger, options.logLevel);
    this.#host = new Host(this.#options, this.#log);
    if (options.sql !== undefined) {
      this.#host.bindSql(sqlExecutor(options.sql));
    }
    addKernel(this);
  }

  /** Starts the process and boots the kernel. Calls do this by themselves. */
  async boot(): Promise<void> {
    await this.#boot();
  }

  /** What the kernel said when it booted; nothing before that. */
  get info(): InitializeResult | undefined {
    return this.#info;
  }

  /** Calls a tool through the router and returns its data. A failed call throws a `TGPError`. */
  async call<Data = any>(tool: string, args: object = {}, options: CallOptions = {}): Promise<Data> {
    checkNames('EVALIDATION', options, CALL_OPTIONS, 'option', 'a call');
    if (typeof args !== 'object' || args === null || Array.isArray(args)) {
      const message = `the arguments of \`${tool}\` are ${kindOf(args)}, expected an object`;
      throw new TGPError('EVALIDATION', message, { help: 'pass an object with the fields of the schema of the tool' });
    }
    checkJson(args, 'arguments');
    const { signal, dryRun } = options;
    const params: ToolsCallParams = { tool, arguments: args as Record<string, unknown> };
    if (dryRun === true) {
      params.dryRun = true;
    }
    const result = (await this.#request('tools/call', params, signal)) as ToolsCallResult;
    if (!result.ok) {
      throw errorFromWire(result.error ?? { code: 'EINTERNAL', message: `\`${tool}\` failed without an error` });
    }
    return (result.data ?? null) as Data;
  }

  /** Runs a forged tool and returns its result. */
  async exec<Result = any>(path: string, args: object = {}, options: ExecOptions = {}): Promise<Result> {
    checkNames('EVALIDATION', options, EXEC_OPTIONS, 'option', '`exec()`');
    const { limits, ...call } = options;
    const params = limits === undefined ? { path, args } : { path, args, limits };
    const data = await this.call<{ result?: Result }>('exec_tool', params, call);
    return (data?.result ?? null) as Result;
  }

  /** Has the agent of the kernel work on a task; the events come in order. */
  run(options: RunOptions): SessionRun {
    if (typeof options?.task !== 'string') {
      const message = `the task of a session is ${kindOf(options?.task)}, expected a string`;
      throw new TGPError('EVALIDATION', message, { help: "pass `{ task: '…' }`" });
    }
    checkNames('EVALIDATION', options, RUN_OPTIONS, 'option', '`run()`');
    const { signal, ...task } = options;
    const params: SessionRunParams = task;
    return new SessionRun(async (onEvent, cancelled) => {
      let id = 0;
      const onSend = (request: number): void => {
        id = request;
        this.#sessions.set(request, onEvent);
      };
      try {
        const result = (await this.#request('session/run', params, cancelled, onSend)) as SessionRunResult;
        return result.summary;
      } finally {
        this.#sessions.delete(id);
      }
    }, signal);
  }

  /** What can be called, as the running kernel describes it. */
  async tools(): Promise<ToolInfo[]> {
    return ((await this.#request('tools/list', {})) as ToolsListResult).tools;
  }

  /** The part of the system prompt that is the same for every project. */
  getSystemPrompt(): string {
    return STATIC_PROMPT;
  }

  /** The system prompt with the state of this project. */
  async systemPrompt(): Promise<string> {
    return ((await this.#request('prompt/get', {})) as PromptGetResult).prompt;
  }

  /** Executes the SQL of `exec_sql` and of tools with this database. `createSqlTools` calls it. */
  useSql(source: SqlSource): void {
    if (this.#isShutDown) {
      throw shutDownError('the kernel was shut down');
    }
    const executor = sqlExecutor(source);
    if (this.#host.sql?.executor === executor) {
      return;
    }
    if (this.#host.sql !== undefined) {
      throw new TGPError('ECONFLICT', 'the kernel executes SQL with another database already', {
        help: 'pass the same pool, connection or function each time, or use a second kernel',
      });
    }
    this.#host.bindSql(executor);
    this.#retire();
  }

  /** Waits for calls that are under way and ends the process. A kernel that was shut down cannot be used again. */
  async shutdown(): Promise<void> {
    this.#isShutDown = true;
    removeKernel(this);
    this.#retire();
    await this.#retired;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /** Lets a running process finish its calls; the next call starts another. */
  #retire(): void {
    const booted = this.#booted;
    this.#booted = undefined;
    if (booted !== undefined) {
      const before = this.#retired;
      const unsent = [...this.#unsent];
      this.#retired = booted
        .then(async ({ process }) => {
          await Promise.all(unsent);
          await process.shutdown(SHUTDOWN_MS);
        })
        .catch(() => {})
        .then(() => before);
    }
  }

  async #request(
    method: string,
    params: unknown,
    signal?: AbortSignal,
    onSend?: (id: number) => void,
  ): Promise<unknown> {
    signal?.throwIfAborted();
    let leave = (): void => {};
    const unsent = new Promise<void>((resolve) => {
      leave = resolve;
    });
    this.#unsent.add(unsent);
    try {
      const { process } = await untilAborted(this.#boot(), signal);
      // Not awaited here: the request is sent when this returns.
      return process.request(method, params, onSend === undefined ? { signal } : { signal, onSend });
    } finally {
      this.#unsent.delete(unsent);
      leave();
    }
  }

  #boot(): Promise<Booted> {
    if (this.#isShutDown) {
      return Promise.reject(shutDownError('the kernel was shut down'));
    }
    if (this.#booted === undefined) {
      const booted = this.#retired.then(() => this.#start());
      this.#booted = booted;
      const forget = (): void => {
        if (this.#booted === booted) {
          this.#booted = undefined;
        }
      };
      booted.then(({ process }) => {
        void process.ended.then(() => {
          forget();
          this.#reportEnd(process);
        });
      }, forget);
    }
    return this.#booted;
  }

  /** An end that no call has failed with is in the log alone. */
  #reportEnd({ unreportedEnd }: KernelProcess): void {
    if (unreportedEnd !== undefined) {
      this.#log.write('warn', unreportedEnd.message);
    }
  }

  async #start(): Promise<Booted> {
    const { configFile, env } = this.#options;
    const config = configFile === undefined ? undefined : resolve(configFile);
    const directory = resolve(this.#options.directory ?? (config === undefined ? '.' : dirname(config)));
    checkPlaces(directory, config);
    const environment = env ?? process.env;
    const binary = findBinary({
      binary: this.#options.binary,
      environment,
      bases: [__filename, resolve('package.json')],
    });
    const host = { ...(await this.#host.params()), directory };
    const params: InitializeParams = {
      protocolVersion: PROTOCOL_VERSION,
      client: this.#options.client ?? { name: '@tgp/core', version: VERSION },
      host: config === undefined ? host : { ...host, configFile: config },
    };
    if (this.#options.session !== undefined) {
      params.session = this.#options.session;
    }
    const kernel = new KernelProcess(
      { binary, args: ['serve', '--stdio'], directory, environment },
      {
        onRequest: (method, params, signal) => this.#host.handle(method, params, signal),
        onNotification: (method, params) => this.#notified(method, params),
      },
    );
    void kernel.ended.then(() => this.#host.sql?.rollbackAll());
    try {
      const info = await this.#initialize(kernel, params);
      this.#compare(info, binary);
      this.#info = info;
      return { process: kernel, info };
    } catch (error) {
      await kernel.kill();
      if (!kernel.hasSpoken) {
        await checkIsTgp(binary, environment, this.#options.binary === undefined ? undefined : 'binary');
      }
      throw error;
    }
  }

  async #initialize(kernel: KernelProcess, params: InitializeParams): Promise<InitializeResult> {
    const timeoutMs = this.#options.bootTimeoutMs ?? BOOT_TIMEOUT_MS;
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      return (await kernel.request('initialize', params, { signal: timeout })) as InitializeResult;
    } catch (error) {
      if (timeout.aborted && error === timeout.reason) {
        throw new TGPError('EINTERNAL', `the kernel did not boot within ${timeoutMs / 1000} s`, { help: BOOT_HELP });
      }
      throw error;
    }
  }

  /** This package was generated with one version of the program; another may describe its tools differently. */
  #compare(info: InitializeResult, binary: string): void {
    if (info?.protocolVersion !== PROTOCOL_VERSION) {
      throw new TGPError('ECONFIG', `\`${binary}\` speaks another version of the protocol`, {
        help: `install version ${VERSION} of \`tgp\``,
        expected: PROTOCOL_VERSION,
        found: info?.protocolVersion,
      });
    }
    const differing = [
      info.kernel.definitionsHash === DEFINITIONS_HASH ? [] : ['tool definitions'],
      info.kernel.staticPrompt === STATIC_PROMPT ? [] : ['system prompt'],
    ].flat();
    if (differing.length > 0) {
      this.#log.write(
        'warn',
        `the ${differing.join(' and the ')} of \`${binary}\` (version ${info.kernel.version}) differ from those of ` +
          `this package (generated with ${GENERATED_WITH}); install the same version of both`,
      );
    }
    for (const notice of info.notices) {
      this.#log.write('warn', notice);
    }
  }

  #notified(method: string, params: unknown): void {
    if (method === 'log') {
      const { level, target, message } = params as LogParams;
      this.#log.write(level, `${target}: ${message}`);
    } else if (method === 'session/event') {
      const { request, event } = params as SessionEvent;
      this.#sessions.get(Number(request))?.(event);
    }
  }
}

/** A process started in a directory that does not exist fails as if its program did not. */
function checkPlaces(directory: string, config: string | undefined): void {
  if (config !== undefined && !statSync(config, { throwIfNoEntry: false })?.isFile()) {
    throw new TGPError('ECONFIG', `\`configFile\` names \`${config}\`, which is not a file`, {
      help: `run \`npx tgp init\` in \`${dirname(config)}\`, or correct \`configFile\``,
    });
  }
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
    throw new TGPError('ECONFIG', `the project \`${directory}\` is not a directory`, {
      help: 'correct `directory`, or create it and run `npx tgp init` in it',
    });
  }
}

/** Waits no longer than the signal allows; what is waited for goes on. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) {
    return work;
  }
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
