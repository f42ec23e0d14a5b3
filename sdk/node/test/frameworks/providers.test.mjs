// `openai`, `@anthropic-ai/sdk` and `@openai/agents`, each against a server on the loopback address.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { Agent, OpenAIProvider, Runner, setTracingDisabled } from '@openai/agents';
import { executeToolCall, tgpTools, toAgentsTools, toAnthropicTools, toOpenAITools } from '@tgp/core';
import OpenAI from 'openai';
import { chatAnswers, messagesAnswers, modelServer, responsesAnswers } from '../support/models.mjs';
import { FORGE_CALLS, realKernel, skip } from '../support/real.mjs';

const TEXT = 'The tenth number is 55.';

test('openai: chat completions', { skip }, async (t) => {
  const { kernel } = realKernel(t);
  const { url, requests } = await modelServer(t, chatAnswers(FORGE_CALLS, TEXT));
  const openai = new OpenAI({ baseURL: url, apiKey: 'none' });
  const tools = tgpTools(kernel);
  const messages = [
    { role: 'system', content: kernel.getSystemPrompt() },
    { role: 'user', content: 'What is the tenth Fibonacci number?' },
  ];
  for (;;) {
    const { choices: [{ message }] } = await openai.chat.completions.create({ model: 'm', messages, tools: toOpenAITools(tools) });
    messages.push(message);
    if (!message.tool_calls) break;
    for (const { id, function: { name, arguments: args } } of message.tool_calls) {
      const { content } = await executeToolCall(tools, name, args);
      messages.push({ role: 'tool', tool_call_id: id, content });
    }
  }
  assert.equal(messages.at(-1).content, TEXT);
  assert.equal(JSON.parse(messages.at(-2).content).result, 55);
  assert.equal(requests[0].body.tools.length, 8);
  assert.equal(requests[0].body.tools[0].function.parameters.type, 'object');
});

test('openai: responses', { skip }, async (t) => {
  const { kernel } = realKernel(t);
  const { url } = await modelServer(t, responsesAnswers(FORGE_CALLS, TEXT));
  const openai = new OpenAI({ baseURL: url, apiKey: 'none' });
  const tools = tgpTools(kernel);
  const input = [{ role: 'user', content: 'What is the tenth Fibonacci number?' }];
  let last;
  for (;;) {
    const response = await openai.responses.create({ model: 'm', input, tools: toOpenAITools(tools, { api: 'responses' }) });
    input.push(...response.output);
    const calls = response.output.filter((item) => item.type === 'function_call');
    if (calls.length === 0) {
      assert.equal(response.output_text, TEXT);
      break;
    }
    for (const { call_id, name, arguments: args } of calls) {
      last = (await executeToolCall(tools, name, args)).content;
      input.push({ type: 'function_call_output', call_id, output: last });
    }
  }
  assert.equal(JSON.parse(last).result, 55);
});

test('anthropic: messages', { skip }, async (t) => {
  const { kernel } = realKernel(t);
  const { url, requests } = await modelServer(t, messagesAnswers(FORGE_CALLS, TEXT));
  const anthropic = new Anthropic({ baseURL: url, apiKey: 'none' });
  const tools = tgpTools(kernel);
  const messages = [{ role: 'user', content: 'What is the tenth Fibonacci number?' }];
  const request = { model: 'm', max_tokens: 1_000, system: kernel.getSystemPrompt(), tools: toAnthropicTools(tools) };
  let answer = await anthropic.messages.create({ ...request, messages });
  while (answer.stop_reason === 'tool_use') {
    const results = [];
    for (const { id, name, input } of answer.content.filter((block) => block.type === 'tool_use')) {
      const { content, isError } = await executeToolCall(tools, name, input);
      results.push({ type: 'tool_result', tool_use_id: id, content, is_error: isError });
    }
    messages.push({ role: 'assistant', content: answer.content }, { role: 'user', content: results });
    answer = await anthropic.messages.create({ ...request, messages });
  }
  assert.equal(answer.content[0].text, TEXT);
  assert.equal(JSON.parse(messages.at(-1).content[0].content).result, 55);
  assert.equal(requests[0].body.tools[0].input_schema.type, 'object');
});

test('the OpenAI Agents SDK', { skip }, async (t) => {
  setTracingDisabled(true);
  const { kernel } = realKernel(t);
  const { url, requests } = await modelServer(t, responsesAnswers(FORGE_CALLS, TEXT));
  const modelProvider = new OpenAIProvider({ openAIClient: new OpenAI({ baseURL: url, apiKey: 'none' }), useResponses: true });
  const agent = new Agent({ name: 'Forger', model: 'm', instructions: kernel.getSystemPrompt(), tools: toAgentsTools(tgpTools(kernel)) });
  const result = await new Runner({ modelProvider }).run(agent, 'What is the tenth Fibonacci number?', { maxTurns: 20 });
  assert.equal(result.finalOutput, TEXT);
  const outputs = requests.at(-1).body.input.filter((item) => item.type === 'function_call_output');
  assert.match(JSON.stringify(outputs.at(-1).output), /55/);
  assert.equal(requests[0].body.tools[0].strict, false);
});
