// Type tests: `npm run check` fails when one of these lines has another type.

import { DatabaseSync } from 'node:sqlite';

import Anthropic from '@anthropic-ai/sdk';
import { Agent } from '@openai/agents';
import { generateText, streamText, type ToolSet as AiToolSet } from 'ai';
import Database from 'better-sqlite3';
import callbacks from 'mysql2';
import promises from 'mysql2/promise';
import OpenAI from 'openai';
import pg from 'pg';

import {
  createMemoryVFS,
  createSqlTools,
  defineTGPConfig,
  executeToolCall,
  formatTools,
  TGP,
  TGPError,
  tgpTools,
  toAgentsTools,
  toAnthropicTools,
  toOpenAITools,
  type Logger,
  type SourceLocation,
  type TGPOptions,
} from '@tgp/core';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectType<Expected>() {
  return <Given,>(_value: Given, _isEqual: Equal<Given, Expected> extends true ? [] : ['types differ']): void => {};
}

const kernel = new TGP({ configFile: './tgp.config.ts' });
const options: TGPOptions = {
  logger: console,
  vfs: createMemoryVFS(),
  consent: 'effects',
  approve: async ({ tool, hash }) => ({ approved: tool === 'exec_tool', reason: hash }),
  hostTools: { mail: { send: { description: 'Sends.', input: { type: 'object' }, effect: 'network', execute: async ({ to }) => to } } },
};
new TGP(options);
const logger: Logger = console;
new TGP({ logger });
// @ts-expect-error an unknown option
new TGP({ config: './tgp.config.ts' });
// @ts-expect-error an unknown consent
new TGP({ consent: 'always' });

expectType<Promise<void>>()(kernel.boot(), []);
expectType<string>()(kernel.getSystemPrompt(), []);
expectType<Promise<string>>()(kernel.systemPrompt(), []);
expectType<Promise<number>>()(kernel.exec<number>('tools/math/fib.ts', { n: 10 }), []);
void kernel.exec('tools/math/fib.ts', {}, { limits: { cpuMs: 50, memoryMb: 16 }, dryRun: true });
// @ts-expect-error an unknown limit
void kernel.exec('tools/math/fib.ts', {}, { limits: { cpu: 50 } });
expectType<Promise<{ rows: string[] }>>()(kernel.call<{ rows: string[] }>('x', {}, { signal: AbortSignal.timeout(1), dryRun: true }), []);
expectType<SourceLocation | undefined>()(new TGPError('ESQL', 'x').location, []);

async function disposal(): Promise<void> {
  await using scoped = new TGP();
  for await (const event of scoped.run({ task: 'x' })) void event['type'];
}

// The package `ai` takes the tools as they are.
const systemTools = tgpTools(kernel);
const dataTools = createSqlTools(new pg.Pool(), kernel);
const tools = { ...systemTools, ...dataTools } satisfies AiToolSet;
const aiTools: AiToolSet = formatTools(tools);
void systemTools.search.execute({});
// @ts-expect-error not among the default tools
void systemTools.shell_exec;
void tgpTools(kernel, { only: ['shell_exec'] }).shell_exec;
// @ts-expect-error no tool of the kernel
tgpTools(kernel, { only: ['no_such_tool'] });
declare const model: Parameters<typeof generateText>[0]['model'];
void generateText({ model, tools, system: kernel.getSystemPrompt(), prompt: 'x', toolApproval: { exec_tool: 'user-approval' } });
void streamText({ model, tools, prompt: 'x' });
void aiTools;

const chat: OpenAI.Chat.Completions.ChatCompletionTool[] = toOpenAITools(tools);
const responses: OpenAI.Responses.FunctionTool[] = toOpenAITools(tools, { api: 'responses' });
const messages: Anthropic.Tool[] = toAnthropicTools(tools);
new Agent({ name: 'x', tools: toAgentsTools(tools) });
void [chat, responses, messages];
expectType<Promise<{ content: string; isError: boolean }>>();
void executeToolCall(tools, 'search', '{}').then(({ content }) => content.length);

// Every driver, as it is.
createSqlTools(new pg.Client(), kernel);
createSqlTools(promises.createPool('mysql://x'), kernel);
createSqlTools(callbacks.createPool('mysql://x'), kernel);
createSqlTools(await promises.createConnection('mysql://x'), kernel);
createSqlTools(new Database(':memory:'), kernel);
createSqlTools(new DatabaseSync(':memory:'), kernel);
createSqlTools(async (sql: string, parameters: unknown[]) => [{ sql, parameters }], kernel);
// @ts-expect-error not a database
createSqlTools(5, kernel);

defineTGPConfig({ tdd: { mode: 'strict' }, git: { provider: 'github', repo: 'a/b', auth: { token: process.env['TOKEN'] } } });
// @ts-expect-error an unknown field
defineTGPConfig({ sandbox: { memoryMB: 1 } });
void disposal;
