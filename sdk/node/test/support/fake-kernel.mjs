#!/usr/bin/env node
// A kernel that behaves as a test asks: well, badly, or not at all.

import { createInterface } from 'node:readline';

if (process.argv.includes('--version')) {
  console.log('tgp 9.9.9');
  process.exit(0);
}
const boot = process.env.FAKE_BOOT ?? 'good';
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const waiting = new Map();
let nextId = 1;
const open = new Set();

function askHost(method, params) {
  const id = nextId++;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

const info = {
  protocolVersion: boot === 'other-version' ? 2 : 1,
  kernel: { version: '9.9.9', definitionsHash: 'other', staticPrompt: 'other' },
  session: 'host/test',
  project: process.cwd(),
  notices: boot === 'notices' ? ['a field was ignored'] : [],
};

const tools = {
  echo: (args) => args,
  environment: () => ({ pid: process.pid, args: process.argv.slice(2), directory: process.cwd(), params: bootParams }),
  hang: () => new Promise(() => {}),
  later: ({ ms, value }) => new Promise((resolve) => setTimeout(() => resolve(value), ms)),
  die: ({ text, code }) => {
    process.stderr.write(text);
    process.exit(code);
  },
  kill: () => process.kill(process.pid, 'SIGKILL'),
  garbage: ({ line }) => void process.stdout.write(`${line}\n`) ?? new Promise(() => {}),
  huge: ({ bytes }) => void process.stdout.write('x'.repeat(bytes)) ?? new Promise(() => {}),
  stray: () => {
    send({ id: 999_999, result: { ok: true } });
    return 'still here';
  },
  ask: ({ method, params }) => askHost(method, params),
  ask_many: async ({ method, params, count }) => Promise.all(Array.from({ length: count }, () => askHost(method, params))),
  ask_and_cancel: ({ method, params }) => {
    const answer = askHost(method, params);
    send({ method: 'cancel', params: { id: nextId - 1 } });
    return answer;
  },
  open: () => open.size,
  log: ({ level, message }) => {
    send({ method: 'log', params: { level, target: 'fake', message } });
    return null;
  },
};

const errors = {
  fail: { code: 'ECOMPILE', message: 'it does not compile', details: { place: { file: 'tools/a.ts', line: 3, column: 7 }, help: 'close the brace', field: 'content' } },
};

let bootParams;
const cancelled = new Set();

async function handle({ id, method, params }) {
  if (method === 'initialize') {
    bootParams = params;
    if (boot === 'never') return;
    if (boot === 'exit') {
      process.stderr.write('error: no such option --stdio\n');
      process.exit(2);
    }
    if (boot === 'error') {
      return send({ id, error: { code: -32000, message: 'wrong', data: { code: 'ECONFIG', message: 'tgp.config.ts has 1 wrong field', details: {} } } });
    }
    return send({ id, result: info });
  }
  if (method === 'shutdown') {
    while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    send({ id, result: {} });
    return boot === 'stubborn' ? undefined : process.exit(0);
  }
  if (method === 'tools/list') return send({ id, result: { tools: [{ name: 'echo', aliases: [], description: '', inputSchema: {}, effect: 'read', dryRun: true }] } });
  if (method === 'prompt/get') return send({ id, result: { prompt: 'live prompt' } });
  if (method === 'session/run') {
    for (let step = 0; step < 3 && !cancelled.has(id); step++) {
      send({ method: 'session/event', params: { request: id, event: { type: 'text', step } } });
      await new Promise((resolve) => setTimeout(resolve, params.task === 'slow' ? 200 : 1));
    }
    if (cancelled.has(id)) {
      process.stderr.write('cancelled the session\n');
      return send({ id, error: { code: -32000, message: 'cancelled' } });
    }
    return send({ id, result: { summary: { steps: 3 } } });
  }
  if (method === 'tools/call') {
    if (errors[params.tool]) return send({ id, result: { ok: false, error: errors[params.tool] } });
    open.add(id);
    const data = await tools[params.tool](params.arguments);
    open.delete(id);
    return cancelled.has(id) ? undefined : send({ id, result: { ok: true, data } });
  }
  send({ id, error: { code: -32601, message: `unknown method ${method}` } });
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.method === 'cancel') {
    cancelled.add(message.params.id);
    open.delete(message.params.id);
    process.stderr.write(`cancel ${message.params.id}\n`);
    send({ id: message.params.id, result: { ok: false, error: { code: 'EINTERNAL', message: 'cancelled' } } });
  } else if (message.method === undefined) {
    waiting.get(message.id)?.(message.error ? { error: message.error } : { result: message.result });
  } else {
    void handle(message);
  }
}
if (boot !== 'stubborn') process.exit(0);
process.on('SIGTERM', () => {});
setInterval(() => {}, 1_000);
