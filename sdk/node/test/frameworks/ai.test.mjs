// The package `ai`: its mock model searches, forges, tests and runs a tool, and uses SQL.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';

import { createSqlTools, tgpTools } from '@tgp/core';
import { generateText, isStepCount, stepCountIs, streamText } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { generateTurns, streamTurns } from '../support/models.mjs';
import { EXPLORE, FIB, FORGE_CALLS, realKernel, skip } from '../support/real.mjs';

const stopWhen = (stepCountIs ?? isStepCount)(20);
const SQL_CALLS = [
  ['exec_sql', { sql: 'INSERT INTO results VALUES (?, ?)', params: ['fib', 55] }],
  ['exec_sql', { sql: 'SELECT value FROM results WHERE name = :name', params: { name: 'fib' } }],
];

function database() {
  const db = new DatabaseSync(':memory:');
  db.exec('CREATE TABLE results (name TEXT, value INTEGER)');
  return db;
}

test('generateText searches, forges, tests, runs and uses SQL', { skip }, async (t) => {
  const { kernel } = realKernel(t);
  const db = database();
  const systemTools = tgpTools(kernel);
  const dataTools = createSqlTools(db);
  const model = new MockLanguageModelV4({ doGenerate: generateTurns([...FORGE_CALLS, ...SQL_CALLS], 'The tenth number is 55.') });
  const result = await generateText({
    model,
    tools: { ...systemTools, ...dataTools },
    messages: [{ role: 'user', content: 'What is the tenth Fibonacci number?' }],
    system: kernel.getSystemPrompt(),
    stopWhen,
  });
  assert.equal(result.text, 'The tenth number is 55.');
  const outputs = result.steps.flatMap((step) => step.content).filter((part) => part.type === 'tool-result' || part.type === 'tool-error');
  assert.equal(outputs.length, FORGE_CALLS.length + SQL_CALLS.length);
  assert.equal(outputs[6].output.result, 55, JSON.stringify(outputs));
  assert.deepEqual(outputs[8].output.rows, [{ value: 55 }]);
  assert.equal(db.prepare('SELECT value FROM results').get().value, 55);
  const given = model.doGenerateCalls[0];
  assert.deepEqual(given.tools.map((tool) => tool.name).sort(), [...Object.keys(systemTools), 'exec_sql'].sort());
  const exec = given.tools.find((tool) => tool.name === 'exec_tool');
  assert.deepEqual(Object.keys(exec.inputSchema.properties).sort(), ['args', 'limits', 'path']);
  assert.equal(exec.inputSchema.properties.args.additionalProperties, undefined, 'schemas reach the model unchanged');
  assert.match(JSON.stringify(given.prompt), /eight standards|8 standards|Standards/i);
});

test('a failed call is an error that the model can act on', { skip }, async (t) => {
  const { kernel } = realKernel(t);
  const calls = [['write_file', { path: 'tools/math/fib.ts', content: FIB }]];
  const model = new MockLanguageModelV4({ doGenerate: generateTurns(calls, 'I write a test first.') });
  const result = await generateText({ model, tools: tgpTools(kernel), prompt: 'forge', stopWhen });
  const [failed] = result.steps[0].content.filter((part) => part.type === 'tool-error');
  assert.equal(failed.error.code, 'ESTATE');
  assert.match(JSON.stringify(model.doGenerateCalls[1].prompt), /ESTATE: /, 'the model is shown the code');
});

test('streamText runs tools', { skip }, async (t) => {
  const { kernel } = realKernel(t, { config: EXPLORE });
  await kernel.call('write_file', { path: 'tools/math/fib.ts', content: FIB });
  const calls = [['exec_tool', { path: 'tools/math/fib.ts', args: { n: 10 } }]];
  const model = new MockLanguageModelV4({ doStream: streamTurns(calls, 'It is 55.') });
  const result = streamText({ model, tools: tgpTools(kernel), prompt: 'run it', stopWhen });
  let text = '';
  for await (const piece of result.textStream) text += piece;
  assert.equal(text, 'It is 55.');
  const steps = await result.steps;
  assert.equal(steps[0].toolResults[0].output.result, 55);
});

test('tool approval of `ai` comes before the kernel', { skip }, async (t) => {
  const { kernel } = realKernel(t, { config: EXPLORE });
  await kernel.call('write_file', { path: 'tools/math/fib.ts', content: FIB });
  const calls = [['exec_tool', { path: 'tools/math/fib.ts', args: { n: 10 } }]];
  const tools = tgpTools(kernel);
  const ask = (model, messages) => generateText({ model, tools, messages, stopWhen, toolApproval: { exec_tool: 'user-approval' } });
  const messages = [{ role: 'user', content: 'run it' }];
  const first = await ask(new MockLanguageModelV4({ doGenerate: generateTurns(calls, '') }), messages);
  const request = first.content.find((part) => part.type === 'tool-approval-request');
  assert.ok(request, 'the call waits');
  const respond = (approved) => [
    ...messages,
    ...first.response.messages,
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: request.approvalId, approved }] },
  ];
  const approved = new MockLanguageModelV4({ doGenerate: generateTurns([], 'It is 55.') });
  assert.equal((await ask(approved, respond(true))).text, 'It is 55.');
  assert.match(JSON.stringify(approved.doGenerateCalls[0].prompt), /"result":55/);
  const denied = new MockLanguageModelV4({ doGenerate: generateTurns([], 'Then not.') });
  assert.equal((await ask(denied, respond(false))).text, 'Then not.');
  assert.doesNotMatch(JSON.stringify(denied.doGenerateCalls[0].prompt), /"result":55/);
});

test('an aborted generation cancels the run', { skip }, async (t) => {
  const { kernel } = realKernel(t, { config: { ...EXPLORE, sandbox: { cpuMs: 60_000, wallMs: 60_000 } } });
  const content = '/** Never ends. */\nexport default function endless(): number {\n  let n = 0;\n  while (n >= 0) n += 1;\n  return n;\n}\n';
  await kernel.call('write_file', { path: 'tools/endless.ts', content });
  const model = new MockLanguageModelV4({ doGenerate: generateTurns([['exec_tool', { path: 'tools/endless.ts' }]], 'never') });
  const start = Date.now();
  await generateText({ model, tools: tgpTools(kernel), prompt: 'run it', stopWhen, abortSignal: AbortSignal.timeout(500) }).catch(() => {});
  assert.ok(Date.now() - start < 10_000);
});
