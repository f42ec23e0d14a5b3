/** Tools in the formats of providers and frameworks. */

import { checkNames } from '../checks.js';
import { TGPError } from '../errors.js';
import type { JsonSchema } from '../options.js';
import { suggestion } from '../suggest.js';
import { executeToolCall } from './execute.js';
import { checkTools, type AgentTool, type ToolSet } from './tool.js';

/** The tools for the package `ai`, which takes them as they are. */
export function formatTools<Names extends string>(tools: ToolSet<Names>): ToolSet<Names> {
  return tools;
}

/** A function of OpenAI's chat completions. */
export interface OpenAIChatTool {
  type: 'function';
  function: { name: string; description: string; parameters: JsonSchema };
}

/** A function of OpenAI's responses. */
export interface OpenAIResponsesTool {
  type: 'function';
  name: string;
  description: string;
  parameters: JsonSchema;
  strict: false;
}

const APIS: readonly string[] = ['chat', 'responses'];

/** For `openai`: chat completions, or responses with `{ api: 'responses' }`. */
export function toOpenAITools(tools: ToolSet, options?: { api: 'chat' }): OpenAIChatTool[];
export function toOpenAITools(tools: ToolSet, options: { api: 'responses' }): OpenAIResponsesTool[];
export function toOpenAITools(
  tools: ToolSet,
  options: { api: 'chat' | 'responses' } = { api: 'chat' },
): (OpenAIChatTool | OpenAIResponsesTool)[] {
  checkTools('toOpenAITools()', tools);
  checkNames('EVALIDATION', options, ['api'], 'option', '`toOpenAITools()`');
  const { api }: { api?: string } = options;
  if (api !== undefined && !APIS.includes(api)) {
    throw new TGPError('EVALIDATION', `unknown api \`${String(api)}\` of \`toOpenAITools()\``, { help: suggestion(String(api), APIS) });
  }
  return Object.entries(tools).map(([name, { description, inputSchema }]) => {
    const parameters = inputSchema.jsonSchema;
    return options.api === 'responses'
      ? { type: 'function', name, description, parameters, strict: false }
      : { type: 'function', function: { name, description, parameters } };
  });
}

/** A tool as `@anthropic-ai/sdk` takes it. */
export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: { type: 'object'; [keyword: string]: unknown };
}

/** For `@anthropic-ai/sdk`. */
export function toAnthropicTools(tools: ToolSet): AnthropicTool[] {
  checkTools('toAnthropicTools()', tools);
  return Object.entries(tools).map(([name, { description, inputSchema }]) => ({
    name,
    description,
    input_schema: { ...inputSchema.jsonSchema, type: 'object' },
  }));
}

/** A function tool of the OpenAI Agents SDK, `@openai/agents`. */
export interface AgentsTool {
  type: 'function';
  name: string;
  description: string;
  parameters: any;
  strict: false;
  invoke: (context: unknown, input: string, details?: { signal?: AbortSignal }) => Promise<string>;
  needsApproval: () => Promise<boolean>;
  isEnabled: () => Promise<boolean>;
}

/** For `@openai/agents`. A failed call is a result that the model reads. */
export function toAgentsTools(tools: ToolSet): AgentsTool[] {
  checkTools('toAgentsTools()', tools);
  return Object.entries(tools).map(([name, { description, inputSchema }]: [string, AgentTool]) => ({
    type: 'function',
    name,
    description,
    parameters: inputSchema.jsonSchema,
    strict: false,
    invoke: async (_context, input, details) =>
      (await executeToolCall(tools, name, input, { signal: details?.signal })).content,
    needsApproval: async () => false,
    isEnabled: async () => true,
  }));
}
