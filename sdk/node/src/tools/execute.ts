/** Runs a call that a model has asked for, for providers without a framework. */

import { describeError, messageOf, TGPError } from '../errors.js';
import { suggestion } from '../suggest.js';
import type { ToolSet } from './tool.js';

/** The result of a call as a model reads it. */
export interface ToolCallResult {
  /** What the model is shown: JSON, or the error as text. */
  content: string;
  isError: boolean;
}

/**
 * Runs one call and returns its result as text. A call that fails is a result, too; only an aborted signal throws.
 * `input` is an object, or its JSON as OpenAI sends it.
 */
export async function executeToolCall(
  tools: ToolSet,
  name: string,
  input: unknown,
  options: { signal?: AbortSignal | undefined } = {},
): Promise<ToolCallResult> {
  const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (tool === undefined) {
    const error = new TGPError('ENOTFOUND', `unknown tool \`${name}\``, { help: suggestion(name, Object.keys(tools)) });
    return { content: describeError(error), isError: true };
  }
  let args: unknown;
  try {
    args = typeof input === 'string' ? JSON.parse(input === '' ? '{}' : input) : (input ?? {});
  } catch (error) {
    const message = `the arguments of \`${name}\` are not JSON: ${messageOf(error)}`;
    const help = 'pass one JSON object that fits the schema of the tool';
    return { content: describeError(new TGPError('EVALIDATION', message, { help })), isError: true };
  }
  try {
    return { content: JSON.stringify(await tool.execute(args, { signal: options.signal })), isError: false };
  } catch (error) {
    options.signal?.throwIfAborted();
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    return { content: describeError(cause), isError: true };
  }
}
