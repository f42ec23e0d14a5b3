// An agent: a model of OpenAI, or of any server that speaks its protocol, with the tools of the kernel.
// Usage: OPENAI_API_KEY=… node agent.mjs "What is the tenth Fibonacci number?"

import { createInterface } from 'node:readline/promises';

import { executeToolCall, TGP, tgpTools, toOpenAITools } from '@tgp/core';
import OpenAI from 'openai';

const openai = new OpenAI();
const terminal = createInterface({ input: process.stdin, output: process.stderr });
const kernel = new TGP({
  configFile: './tgp.config.ts',
  // A person agrees to every effect.
  consent: 'effects',
  approve: async ({ tool, arguments: args, preview, hash }) => {
    console.error(preview?.diff ?? JSON.stringify(args, null, 2));
    const answer = await terminal.question(`${tool} (${hash.slice(0, 8)})? [y/N] `);
    return { approved: answer === 'y', by: process.env.USER ?? 'terminal' };
  },
});

const tools = tgpTools(kernel);
const messages = [
  { role: 'system', content: await kernel.systemPrompt() },
  { role: 'user', content: process.argv[2] ?? 'Forge a tool that computes Fibonacci numbers, and use it.' },
];

for (let step = 0; step < 20; step++) {
  const model = process.env.MODEL ?? 'gpt-5';
  const { choices } = await openai.chat.completions.create({ model, messages, tools: toOpenAITools(tools) });
  const { message } = choices[0];
  messages.push(message);
  if (!message.tool_calls) {
    console.log(message.content);
    break;
  }
  for (const { id, function: { name, arguments: args } } of message.tool_calls) {
    const { content } = await executeToolCall(tools, name, args);
    messages.push({ role: 'tool', tool_call_id: id, content });
  }
}

terminal.close();
await kernel.shutdown();
