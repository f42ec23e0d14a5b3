/** Where the log of the kernel and of this client goes. */

import type { HostLogLevel } from './protocol.gen.js';

/** The methods of `console`; pino, winston and bunyan have them too. */
export interface Logger {
  debug(message: string, ...args: unknown[]): void;
  info(message: string, ...args: unknown[]): void;
  warn(message: string, ...args: unknown[]): void;
  error(message: string, ...args: unknown[]): void;
}

/** The level of a line of the log. */
export type LogLevel = HostLogLevel;

const ORDER: readonly LogLevel[] = ['error', 'warn', 'info', 'debug'];

/** Writes to a logger of the application; a logger that throws does not stop the client. */
export class Log {
  readonly #logger: Logger;
  readonly level: LogLevel;
  /** Whether the application takes the log of the kernel. */
  readonly takesKernelLog: boolean;

  /** Without a logger, warnings and errors of the client go to the standard error stream. */
  constructor(logger: Logger | undefined, level: LogLevel | undefined) {
    this.#logger = logger ?? standardError;
    this.takesKernelLog = logger !== undefined || level !== undefined;
    this.level = level ?? (logger === undefined ? 'warn' : 'info');
  }

  write(level: LogLevel, message: string): void {
    if (ORDER.indexOf(level) > ORDER.indexOf(this.level)) {
      return;
    }
    try {
      this.#logger[level](message);
    } catch {
      // The application's logger failed; there is nowhere to report it.
    }
  }
}

const writeLine = (message: string): void => {
  process.stderr.write(`tgp: ${message}\n`);
};

const standardError: Logger = { debug: writeLine, info: writeLine, warn: writeLine, error: writeLine };
