/** A task that the agent of the kernel works on. */

import { TGPError } from './errors.js';

export interface RunOptions {
  task: string;
  /** `openai`, `anthropic` or `script:FILE`; what the configuration says when there is none. */
  provider?: string;
  model?: string;
  maxSteps?: number;
  /** Which effects of the agent are asked for. A model makes its calls, so the default is `effects`: all of them. */
  consent?: 'rules' | 'effects';
  signal?: AbortSignal;
}

/** An event of a session, as `tgp run --json` prints it. */
export type SessionRunEvent = { [key: string]: unknown };

/** The last event of a session. */
export type SessionSummary = { [key: string]: unknown };

/** Events that wait to be read. */
const MAX_WAITING_EVENTS = 100_000;

/** The events of a session, in order. Leaving the loop cancels the session. */
export class SessionRun implements AsyncIterable<SessionRunEvent> {
  /** Resolves when the session has ended, also without reading the events. */
  readonly summary: Promise<SessionSummary>;
  readonly #cancel: AbortController;
  #waiting: SessionRunEvent[] = [];
  #wake: () => void = () => {};
  #isRead = false;
  #isEnded = false;
  #failure: { error: unknown } | undefined;

  constructor(
    start: (onEvent: (event: SessionRunEvent) => void, signal: AbortSignal) => Promise<SessionSummary>,
    signal: AbortSignal | undefined,
  ) {
    this.#cancel = new AbortController();
    const signals = signal === undefined ? [this.#cancel.signal] : [this.#cancel.signal, signal];
    this.summary = start((event) => this.#add(event), AbortSignal.any(signals));
    this.summary.then(
      () => this.#end(undefined),
      (error: unknown) => this.#end({ error }),
    );
  }

  /** Ends the session; what has not taken effect is rolled back. */
  cancel(): void {
    this.#cancel.abort(new TGPError('EINTERNAL', 'the session was cancelled'));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SessionRunEvent, void, void> {
    if (this.#isRead) {
      throw new TGPError('EVALIDATION', 'the events of a session can be read once');
    }
    this.#isRead = true;
    try {
      for (;;) {
        const events = this.#waiting;
        this.#waiting = [];
        yield* events;
        if (this.#waiting.length > 0) {
          continue;
        }
        if (this.#isEnded) {
          break;
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      if (this.#failure !== undefined) {
        throw this.#failure.error;
      }
    } finally {
      if (!this.#isEnded) {
        this.cancel();
      }
    }
  }

  #add(event: SessionRunEvent): void {
    if (this.#waiting.length < MAX_WAITING_EVENTS) {
      this.#waiting.push(event);
      this.#wake();
    } else if (this.#isRead) {
      const error = new TGPError('EBUDGET', `more than ${MAX_WAITING_EVENTS} events of the session wait to be read`);
      this.#end({ error });
      this.#cancel.abort(error);
    }
  }

  #end(failure: { error: unknown } | undefined): void {
    if (!this.#isEnded) {
      this.#isEnded = true;
      this.#failure = failure;
      this.#wake();
    }
  }
}
