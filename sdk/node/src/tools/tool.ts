/** Tools in the shape that agent frameworks take. */

import { isRecord } from '../checks.js';
import { describeError, TGPError } from '../errors.js';
import { kindOf } from '../json.js';
import type { TGP } from '../kernel.js';
import type { JsonSchema } from '../options.js';
import type { HostEffect, ToolInfo } from '../protocol.gen.js';

/** The mark of the schemas of the package `ai`; with it a JSON Schema reaches the model as it is. */
const AI_SCHEMA = Symbol.for('vercel.ai.schema');

/** A JSON Schema as Standard Schema (https://standardschema.dev), which is what the package `ai` and others take. */
export interface ToolSchema {
  readonly jsonSchema: JsonSchema;
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'tgp';
    readonly types?: { readonly input: any; readonly output: any } | undefined;
    readonly validate: (value: unknown) => { readonly value: any; readonly issues?: undefined };
    readonly jsonSchema: {
      readonly input: (options?: unknown) => JsonSchema;
      readonly output: (options?: unknown) => JsonSchema;
    };
  };
}

/** What a framework may tell about a call. */
export interface ToolExecuteOptions {
  abortSignal?: AbortSignal | undefined;
  signal?: AbortSignal | undefined;
}

/** A tool that an agent calls. It has the shape of `tool()` of the package `ai`. */
export interface AgentTool {
  readonly description: string;
  readonly inputSchema: ToolSchema;
  readonly metadata: { readonly source: 'tgp'; readonly effect: HostEffect };
  /** Returns the data of the call. Throws a `TGPError` whose message is written for a model. */
  readonly execute: (input: any, options?: ToolExecuteOptions) => Promise<any>;
}

/** Tools by name. */
export type ToolSet<Names extends string = string> = Record<Names, AgentTool>;

export function agentTool(kernel: TGP, { name, description, inputSchema, effect }: ToolInfo): AgentTool {
  return {
    description,
    inputSchema: toolSchema(inputSchema),
    metadata: { source: 'tgp', effect },
    async execute(input, options = {}) {
      try {
        return await kernel.call(name, (input ?? {}) as object, { signal: options.abortSignal ?? options.signal });
      } catch (error) {
        throw forModel(error);
      }
    },
  };
}

/** Throws for anything but what `tgpTools` and `createSqlTools` return, such as the kernel itself. */
export function checkTools(caller: string, tools: unknown): void {
  const isTool = (tool: unknown): boolean => isRecord(tool) && typeof tool['execute'] === 'function' && isRecord(tool['inputSchema']);
  // A kernel has no fields of its own that one could look at.
  if (!isRecord(tools) || typeof tools['call'] === 'function' || !Object.values(tools).every(isTool)) {
    throw new TGPError('EVALIDATION', `the tools of \`${caller}\` are ${kindOf(tools)}, expected tools by name`, {
      help: 'pass `tgpTools(kernel)`, or several of them: `{ ...tgpTools(kernel), ...createSqlTools(database) }`',
    });
  }
}

/** Frameworks show a model only the message of an error, so it has to hold everything. */
function forModel(error: unknown): unknown {
  if (!(error instanceof TGPError)) {
    return error;
  }
  return new TGPError(error.code, describeError(error), { ...error.details }, { cause: error });
}

/** The kernel validates arguments; here they pass. */
function toolSchema(schema: JsonSchema): ToolSchema {
  const standard: ToolSchema = {
    jsonSchema: schema,
    '~standard': {
      version: 1,
      vendor: 'tgp',
      validate: (value) => ({ value }),
      jsonSchema: { input: () => schema, output: () => schema },
    },
  };
  return Object.assign(standard, {
    [AI_SCHEMA]: true,
    validate: (value: unknown) => ({ success: true, value }),
  });
}
