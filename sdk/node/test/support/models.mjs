// Scripted models: one of the package `ai`, and servers that answer as OpenAI and Anthropic do.

import { once } from 'node:events';
import { createServer } from 'node:http';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};
const finish = (unified) => ({ unified, raw: undefined });

/** What a model of `ai` says: one call a turn, then a text. */
export function generateTurns(calls, text) {
  const turns = calls.map(([toolName, input], at) => ({
    content: [{ type: 'tool-call', toolCallId: `call-${at}`, toolName, input: JSON.stringify(input) }],
    finishReason: finish('tool-calls'),
    usage,
    warnings: [],
  }));
  return [...turns, { content: [{ type: 'text', text }], finishReason: finish('stop'), usage, warnings: [] }];
}

/** The same as streams. */
export function streamTurns(calls, text) {
  const stream = (parts) => ({
    stream: new ReadableStream({
      start(controller) {
        parts.forEach((part) => controller.enqueue(part));
        controller.close();
      },
    }),
  });
  const start = { type: 'stream-start', warnings: [] };
  const end = (unified) => ({ type: 'finish', finishReason: finish(unified), usage });
  const turns = calls.map(([toolName, input], at) =>
    stream([start, { type: 'tool-call', toolCallId: `call-${at}`, toolName, input: JSON.stringify(input) }, end('tool-calls')]),
  );
  const said = [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: text }, { type: 'text-end', id: 't' }];
  return [...turns, stream([start, ...said, end('stop')])];
}

/** A server on the loopback address; `answer(body, at)` gives the answer to the request number `at`. */
export async function modelServer(test, answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    requests.push({ path: request.url, body });
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answer(body, requests.length - 1)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(() => server.close());
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

export const chatAnswers = (calls, text) => (_body, at) => {
  const call = calls[at];
  const message = call
    ? { role: 'assistant', content: null, refusal: null, tool_calls: [{ id: `call_${at}`, type: 'function', function: { name: call[0], arguments: JSON.stringify(call[1]) } }] }
    : { role: 'assistant', content: text, refusal: null };
  const finish_reason = call ? 'tool_calls' : 'stop';
  return { id: `chat-${at}`, object: 'chat.completion', created: 0, model: 'm', choices: [{ index: 0, message, finish_reason, logprobs: null }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
};

export const responsesAnswers = (calls, text) => (_body, at) => {
  const call = calls[at];
  const output = call
    ? [{ type: 'function_call', id: `fc_${at}`, call_id: `call_${at}`, name: call[0], arguments: JSON.stringify(call[1]), status: 'completed' }]
    : [{ type: 'message', id: `m_${at}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] }];
  return { id: `resp_${at}`, object: 'response', created_at: 0, model: 'm', status: 'completed', output, parallel_tool_calls: true, tool_choice: 'auto', tools: [], usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } } };
};

export const messagesAnswers = (calls, text) => (_body, at) => {
  const call = calls[at];
  const content = call ? [{ type: 'tool_use', id: `toolu_${at}`, name: call[0], input: call[1] }] : [{ type: 'text', text }];
  return { id: `msg_${at}`, type: 'message', role: 'assistant', model: 'm', content, stop_reason: call ? 'tool_use' : 'end_turn', stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
};
