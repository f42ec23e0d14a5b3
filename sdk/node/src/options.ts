/** What an application decides about its kernel. */

import type { Logger, LogLevel } from './logger.js';
import type { ApproveParams, HostConsent, HostEffect } from './protocol.gen.js';
import type { SqlSource } from './sql/detect.js';
import type { VFSAdapter } from './vfs/adapter.js';

/** JSON Schema of an object. */
export type JsonSchema = { [keyword: string]: unknown };

/** A question of the kernel, with everything that decides the effect. */
export type ApprovalRequest = ApproveParams;

/** An answer with its reason and its author. */
export interface ApprovalAnswer {
  approved: boolean;
  /** Why not; the agent is shown it. */
  reason?: string;
  /** Who has answered, for the record. */
  by?: string;
}

/** What a function of the application is given with each request of the kernel. */
export interface CallbackOptions {
  /** Aborted when the answer is of no more interest. */
  signal: AbortSignal;
}

/** Answers whether a call may take effect. */
export type Approve = (
  request: ApprovalRequest,
  options: CallbackOptions,
) => boolean | ApprovalAnswer | Promise<boolean | ApprovalAnswer>;

/** A function of the application that forged tools import from `host:MODULE`. */
export interface HostToolDefinition {
  description: string;
  /** JSON Schema of its one argument, an object. */
  input?: JsonSchema;
  /** JSON Schema of what it returns. */
  output?: JsonSchema;
  /** What it can do to the world; gates decide by it. `execute` unless declared otherwise. */
  effect?: HostEffect;
  execute(args: any, options: CallbackOptions): unknown;
}

/** Functions by module and name: `{ mail: { send: { … } } }` is `import { send } from 'host:mail'`. */
export type HostTools = Record<string, Record<string, HostToolDefinition>>;

/** The options of a kernel. All of them have a default. */
export interface TGPOptions {
  /** The configuration file; the project is its directory. */
  configFile?: string;
  /** The project; the directory of `configFile`, or the current directory. */
  directory?: string;
  /** Keeps the files of the tool repository instead of the disk. */
  vfs?: VFSAdapter;
  /** Takes the log of the kernel and of this client. Without it, the client's warnings go to the standard error stream. */
  logger?: Logger;
  /** From which level on lines are logged: `info` with a logger, `warn` without one. */
  logLevel?: LogLevel;
  /** Answers approvals. Without it, calls that need one end with `EAPPROVAL`. */
  approve?: Approve;
  /** Which approvals are asked for: what a rule asks for (`rules`, the default), or every effect (`effects`). */
  consent?: HostConsent;
  /** Functions of the application for forged tools. */
  hostTools?: HostTools;
  /** The database of `exec_sql`; `createSqlTools` sets it, too. */
  sql?: SqlSource;
  /** What the application calls its work, for the record. */
  session?: string;
  /** What the application calls itself, for the record. */
  client?: { name: string; version: string };
  /** The program `tgp`; otherwise `TGP_BIN`, the package of the platform, or the path. */
  binary?: string;
  /** The environment of the kernel; that of this process when there is none. */
  env?: NodeJS.ProcessEnv;
  /** How long a boot may take, with the time to pull tools from a remote. */
  bootTimeoutMs?: number;
}
