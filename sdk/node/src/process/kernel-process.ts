/** One process of the kernel: from its start until it has ended. */

import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

import { messageOf, shutDownError, TGPError } from '../errors.js';
import { Connection, type ConnectionEvents, type RequestOptions } from '../rpc/connection.js';
import { TextTail } from './text-tail.js';

/** How much of the end of the standard error stream an error shows. */
const STDERR_TAIL_BYTES = 8 * 1024;
/** The pipes of a process that has ended may be held open by others. */
const DRAIN_MS = 200;
/** How long a kernel has to end after its input was closed, and then after SIGTERM. */
const EXIT_MS = 5_000;
const TERMINATE_MS = 2_000;

export interface StartOptions {
  binary: string;
  args: readonly string[];
  directory: string;
  environment: NodeJS.ProcessEnv;
}

export type KernelEvents = Pick<ConnectionEvents, 'onRequest' | 'onNotification'>;

export class KernelProcess {
  /** Resolves when the process has ended and its streams were read. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #connection: Connection;
  readonly #stderr = new TextTail(STDERR_TAIL_BYTES);
  readonly #binary: string;
  #isEnding = false;
  #isHeld = false;
  #hasEnded = false;
  #unreportedEnd: TGPError | undefined;

  constructor({ binary, args, directory, environment }: StartOptions, events: KernelEvents) {
    this.#binary = binary;
    // In a process group of its own, the keys of a terminal reach only the application, which decides what ends.
    // When the application is gone, for whatever reason, the kernel reads the end of its input and ends.
    this.#child = spawn(binary, args, {
      cwd: directory,
      env: environment,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child.stderr.on('data', (piece: Buffer) => this.#stderr.push(piece));
    this.#child.stderr.on('error', () => {});
    this.#connection = new Connection(this.#child.stdout, this.#child.stdin, {
      ...events,
      onViolation: () => void this.kill(),
      onActivity: (isActive) => this.#hold(isActive || this.#isHeld),
    });
    this.ended = this.#whenEnded();
    this.#hold(false);
  }

  /** Whether it has written a message of the protocol. */
  get hasSpoken(): boolean {
    return this.#connection.hasReceived;
  }

  /** Why it has ended, where nothing was asked for and no request has failed with it. */
  get unreportedEnd(): TGPError | undefined {
    return this.#unreportedEnd;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  request(method: string, params: unknown, options?: RequestOptions): Promise<unknown> {
    return this.#connection.request(method, params, options);
  }

  /** Waits until calls have ended, then until the process has. */
  async shutdown(timeoutMs: number): Promise<void> {
    if (this.#hasEnded) {
      return;
    }
    this.#isEnding = true;
    try {
      await this.request('shutdown', {}, { signal: AbortSignal.timeout(timeoutMs) });
    } catch {
      // It does not answer: the end of its input cancels what is under way.
    }
    await this.end();
  }

  /** Closes the input, which cancels what is under way, and ends a process that does not end by itself. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#holdUntilEnded();
    this.#child.stdin.end();
    if (await this.#endsWithin(EXIT_MS)) {
      return;
    }
    this.#child.kill('SIGTERM');
    if (!(await this.#endsWithin(TERMINATE_MS))) {
      await this.kill();
    }
  }

  /** Ends the process at once. */
  async kill(): Promise<void> {
    this.#holdUntilEnded();
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  async #endsWithin(milliseconds: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), milliseconds);
    });
    const isInTime = await Promise.race([this.ended.then(() => true), timeout]);
    clearTimeout(timer);
    return isInTime;
  }

  #whenEnded(): Promise<void> {
    return new Promise((resolve) => {
      const finish = (error: TGPError): void => {
        this.#hasEnded = true;
        const failed = this.#connection.close(error);
        if (failed === 0 && !this.#isEnding) {
          this.#unreportedEnd = error;
        }
        resolve();
      };
      this.#child.once('error', (error) => {
        if (this.#child.pid === undefined) {
          finish(
            new TGPError('ECAPABILITY', `cannot start \`${this.#binary}\`: ${messageOf(error)}`, {}, { cause: error }),
          );
        }
      });
      this.#child.once('exit', (code, signal) => {
        const timer = setTimeout(() => finish(this.#endError(code, signal)), DRAIN_MS);
        this.#child.once('close', () => {
          clearTimeout(timer);
          finish(this.#endError(code, signal));
        });
      });
    });
  }

  #endError(code: number | null, signal: string | null): TGPError {
    if (this.#isEnding) {
      return shutDownError('the kernel was shut down before the call ended');
    }
    const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
    const log = this.#stderr.toString().trim();
    const shown = log === '' ? '; its log is empty' : `; the end of its log:\n${log}`;
    const help = 'the next call starts another kernel; `tgp doctor` checks this machine';
    return new TGPError('EINTERNAL', `the kernel ended unexpectedly ${how}${shown}`, { help, exitCode: code, signal, log });
  }

  /** A process that is being ended keeps the application alive until it is gone. */
  #holdUntilEnded(): void {
    this.#isHeld = true;
    this.#hold(true);
  }

  /** Open requests keep the application alive; an idle kernel does not. */
  #hold(isActive: boolean): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const handle of [this.#child, stdin, stdout, stderr] as unknown as Partial<Pick<Socket, 'ref' | 'unref'>>[]) {
      if (isActive) {
        handle.ref?.();
      } else {
        handle.unref?.();
      }
    }
  }
}
