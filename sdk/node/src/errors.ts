/** Errors of the kernel and of this client. */

import type { RpcError, ToolError } from './protocol.gen.js';

/** The stable codes; `docs/errors.md` explains them. */
export const ERROR_CODES = [
  'EVALIDATION',
  'ESTATE',
  'EPOLICY',
  'EAPPROVAL',
  'EPERMISSION',
  'EHALT',
  'ESECURITY',
  'ECAPABILITY',
  'ECOMPILE',
  'ERR_ISOLATE_MEMORY',
  'ERR_ISOLATE_TIMEOUT',
  'ERUNTIME',
  'ENOTFOUND',
  'ECONFLICT',
  'EGIT',
  'ESQL',
  'EFETCH',
  'EUPSTREAM',
  'EPIN',
  'EPROVIDER',
  'EBUDGET',
  'EINTEGRITY',
  'ECONFIG',
  'EINTERNAL',
] as const;

/** The codes that this version knows. */
export type KnownErrorCode = (typeof ERROR_CODES)[number];

/** A code of a newer kernel is a string that this version does not know. */
export type TGPErrorCode = KnownErrorCode | (string & {});

/** A position in a source file. Lines and columns count from 1. */
export interface SourceLocation {
  file: string;
  line: number;
  column: number;
}

/** The most that a model is shown of the details of an error. */
const MAX_DETAILS_CHARACTERS = 8_000;

/**
 * A failed call, a failed boot, or a kernel that has ended. Programs match on `code`; people read `message`. As text, and in
 * a stack trace, it is `TGPError: CODE: message (file:line:column)` with the next step on a line of its own.
 */
export class TGPError extends Error {
  override readonly name = 'TGPError';
  readonly code: TGPErrorCode;
  /** What a program can use: `place`, `help`, `field`, `logs` and more. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Where in a TypeScript source it happened. */
  readonly location: SourceLocation | undefined;

  constructor(code: TGPErrorCode, message: string, details: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.details = details;
    this.location = readLocation(details['place']);
    // The engine has written the stack with the message alone.
    const stack = this.stack ?? '';
    const frames = stack.indexOf('\n    at ', stack.indexOf(message) + message.length);
    const value = `${this}${frames === -1 ? '' : stack.slice(frames)}`;
    Object.defineProperty(this, 'stack', { value, configurable: true, writable: true });
  }

  /** The next step, if the kernel knows one. */
  get help(): string | undefined {
    const help = this.details['help'];
    return typeof help === 'string' ? help : undefined;
  }

  override toString(): string {
    return `${this.name}: ${summary(this)}`;
  }

  /** The error as the kernel writes it. */
  toJSON(): Omit<ToolError, 'code'> & { code: TGPErrorCode } {
    return { code: this.code, message: this.message, details: { ...this.details } };
  }
}

/** Code, message and location on a line, and the next step on another. */
function summary({ code, message, location, help }: TGPError): string {
  if (message.startsWith(`${code}: `)) {
    // A message for a model, which has everything.
    return message;
  }
  const place = location === undefined ? '' : ` (${location.file}:${location.line}:${location.column})`;
  return `${code}: ${message}${place}${help === undefined ? '' : `\nhelp: ${help}`}`;
}

export function errorFromWire(error: ToolError): TGPError {
  return new TGPError(error.code, error.message, error.details ?? {});
}

/** The error of calls after `shutdown()`, and of calls that it has ended. */
export function shutDownError(message: string): TGPError {
  return new TGPError('ESTATE', message, { help: 'create another kernel: `new TGP({ … })`' });
}

/** An `error` of JSON-RPC: about the message, or the cause in `data`. */
export function errorFromRpc(error: RpcError): TGPError {
  if (error.data !== undefined && error.data !== null && typeof error.data.code === 'string') {
    return errorFromWire(error.data);
  }
  const isArguments = error.code === -32602;
  return new TGPError(isArguments ? 'EVALIDATION' : 'EINTERNAL', error.message, { rpcCode: error.code });
}

/** The answer to the kernel when a callback of the application has failed. */
export function errorToRpc(error: unknown): RpcError {
  const known = error instanceof TGPError ? ERROR_CODES.find((code) => code === error.code) : undefined;
  if (error instanceof TGPError && known !== undefined) {
    return { code: -32000, message: error.message, data: { ...error.toJSON(), code: known } };
  }
  return { code: -32000, message: classAndMessageOf(error) };
}

/** `TypeError: …`. The class `Error` says nothing, and is left out. */
export function classAndMessageOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof TGPError) {
    return messageOf(error);
  }
  const name = error.name === 'Error' ? error.constructor.name : error.name;
  return name === 'Error' || error.message === '' ? messageOf(error) : `${name}: ${error.message}`;
}

export function messageOf(error: unknown): string {
  if (error instanceof Error) {
    return error.message === '' ? error.name : error.message;
  }
  return String(error);
}

/** An error as text for a model: code, message, location, next step, and the other details. */
export function describeError(error: unknown): string {
  if (!(error instanceof TGPError)) {
    return messageOf(error);
  }
  const { place: _place, help: _help, ...rest } = error.details;
  const lines = [`${error.code}: ${error.message}`];
  if (error.location !== undefined) {
    const { file, line, column } = error.location;
    lines.push(`at ${file}:${line}:${column}`);
  }
  if (error.help !== undefined) {
    lines.push(`help: ${error.help}`);
  }
  if (Object.keys(rest).length > 0) {
    const details = JSON.stringify(rest);
    const isLong = details.length > MAX_DETAILS_CHARACTERS;
    lines.push(`details: ${isLong ? `${details.slice(0, MAX_DETAILS_CHARACTERS)}… (truncated)` : details}`);
  }
  return lines.join('\n');
}

function readLocation(place: unknown): SourceLocation | undefined {
  if (typeof place !== 'object' || place === null) {
    return undefined;
  }
  const { file, line, column } = place as Partial<SourceLocation>;
  if (typeof file !== 'string' || typeof line !== 'number') {
    return undefined;
  }
  return { file, line, column: typeof column === 'number' ? column : 1 };
}
