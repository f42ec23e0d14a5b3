// The client with the real kernel.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';

import { createMemoryVFS, createNodeVFS, TGP, tgpTools } from '@tgp/core';
import { isAlive, recordingLogger, until } from '../support/fake.mjs';
import { EXPLORE, FIB, FORGE_CALLS, project, realKernel, skip } from '../support/real.mjs';

test('a tool is found, forged, tested and run', { skip }, async (t) => {
  const { kernel, tgp } = realKernel(t);
  const results = [];
  for (const [tool, args] of FORGE_CALLS) {
    results.push(await kernel.call(tool, args).catch((error) => error));
  }
  assert.equal(results[0].verdict ?? 'forge', 'forge', JSON.stringify(results[0]));
  assert.equal(results.at(-1).result, 55, `${results}`);
  assert.equal(await kernel.exec('tools/math/fib.ts', { n: 20 }), 6765);
  await kernel.shutdown();
  assert.match(tgp('--json', 'log'), /fib/);
});

test('definitions and prompt are those of the kernel', { skip }, async (t) => {
  const { kernel, directory } = realKernel(t);
  await kernel.boot();
  const { DEFINITIONS, DEFINITIONS_HASH } = createRequire(import.meta.url)('../../dist/definitions.gen.js');
  assert.equal(kernel.info.kernel.definitionsHash, DEFINITIONS_HASH, 'run `npm run generate`');
  assert.deepEqual(await kernel.tools(), DEFINITIONS);
  assert.equal(kernel.info.project, directory);
  const listed = await kernel.tools();
  assert.ok(Object.keys(tgpTools(kernel)).every((name) => listed.some((tool) => tool.name === name)));
  assert.equal(kernel.getSystemPrompt(), kernel.info.kernel.staticPrompt);
  assert.match(await kernel.systemPrompt(), /The project is/);
});

test('the log of the kernel goes to the logger', { skip }, async (t) => {
  const logger = recordingLogger();
  const { kernel } = realKernel(t, { logger, logLevel: 'debug' });
  await kernel.boot();
  assert.deepEqual(logger.lines.filter((line) => line.includes('differ')), []);
  await until(() => logger.lines.some((line) => line.startsWith('debug: ')));
});

test('a failed call has code, details and location', { skip }, async (t) => {
  const { kernel } = realKernel(t, { config: EXPLORE });
  const content = '/** Fails. */\nexport default function bad(): number {\n  throw new Error("no");\n}\n';
  await kernel.call('write_file', { path: 'tools/bad.ts', content });
  await assert.rejects(kernel.exec('tools/bad.ts'), (error) => {
    assert.equal(error.code, 'ERUNTIME');
    assert.match(error.message, /no/);
    assert.equal(error.location.line, 3);
    assert.match(error.location.file, /bad\.ts$/);
    return true;
  });
  await assert.rejects(kernel.call('exec_tool', { wrong: 1 }), { code: 'EVALIDATION' });
  await assert.rejects(kernel.call('no_such_tool'), { code: 'ENOTFOUND' });
  await assert.rejects(kernel.exec('tools/none.ts'), { code: 'ENOTFOUND' });
});

test('bug: an unknown field of a call was not named', { skip }, async (t) => {
  const { kernel } = realKernel(t, { config: EXPLORE });
  await assert.rejects(kernel.call('write_file', { path: 'docs/a.md', contents: 'x' }), {
    code: 'EVALIDATION',
    message: 'the arguments of `write_file` do not fit: unknown field `contents`; did you mean `content`?',
  });
});

test('a dry run changes nothing', { skip }, async (t) => {
  const { kernel, tgp } = realKernel(t, { config: EXPLORE });
  await kernel.call('write_file', { path: 'tools/math/fib.ts', content: FIB }, { dryRun: true });
  await assert.rejects(kernel.call('read_file', { path: 'tools/math/fib.ts' }), { code: 'ENOTFOUND' });
  assert.ok(tgp);
});

test('an aborted signal stops a run', { skip }, async (t) => {
  const { kernel, tgp } = realKernel(t, { config: { ...EXPLORE, sandbox: { cpuMs: 60_000, wallMs: 60_000 } } });
  const content = '/** Never ends. */\nexport default function endless(): number {\n  let n = 0;\n  while (n >= 0) n += 1;\n  return n;\n}\n';
  await kernel.call('write_file', { path: 'tools/endless.ts', content });
  const start = Date.now();
  await assert.rejects(kernel.exec('tools/endless.ts', {}, { signal: AbortSignal.timeout(300) }), { name: 'TimeoutError' });
  await assert.rejects(kernel.exec('tools/endless.ts', {}, { limits: { cpuMs: 50 } }), { code: 'ERR_ISOLATE_TIMEOUT', message: /50 ms/ });
  assert.ok(Date.now() - start < 10_000);
  await kernel.shutdown();
  assert.match(tgp('--json', 'audit', 'verify'), /"ok":true/);
});

test('the application answers approvals', { skip }, async (t) => {
  const rules = 'version: 1\nrules:\n  - {id: ask-runs, effect: ask, tools: [exec_tool], reason: runs are precious}\n';
  const seen = [];
  let answer = { approved: false, reason: 'not today' };
  const { kernel } = realKernel(t, {
    config: EXPLORE,
    files: { 'tgp.policy.yaml': rules },
    approve: async (request) => seen.push(request) && answer,
  });
  await kernel.call('write_file', { path: 'tools/math/fib.ts', content: FIB });
  await assert.rejects(kernel.exec('tools/math/fib.ts', { n: 3 }), (error) => error.code === 'EAPPROVAL' && /not today/.test(JSON.stringify(error)));
  answer = true;
  assert.equal(await kernel.exec('tools/math/fib.ts', { n: 3 }), 2);
  assert.equal(seen[0].tool, 'exec_tool');
  assert.match(seen[0].reasons.join(), /runs are precious/);
  assert.equal(seen[0].hash.length, 64);
});

test('`consent: effects` asks for every effect; without an answer nothing happens', { skip }, async (t) => {
  const tools = [];
  const { kernel } = realKernel(t, { config: EXPLORE, consent: 'effects', approve: ({ tool }) => tools.push(tool) > 0 });
  await kernel.call('write_file', { path: 'tools/math/fib.ts', content: FIB });
  await kernel.call('read_file', { path: 'tools/math/fib.ts' });
  assert.deepEqual(tools, ['write_file']);
  const { kernel: silent } = realKernel(t, { config: EXPLORE, consent: 'effects' });
  await assert.rejects(silent.call('write_file', { path: 'tools/math/fib.ts', content: FIB }), { code: 'EAPPROVAL' });
});

test('forged tools call functions of the application', { skip }, async (t) => {
  const sent = [];
  const { kernel } = realKernel(t, {
    config: EXPLORE,
    hostTools: {
      mail: {
        send: {
          description: 'Sends a mail.',
          input: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'], additionalProperties: false },
          effect: 'network',
          execute: async ({ to }) => {
            if (to === 'eve') throw new Error('eve gets no mail');
            sent.push(to);
            return { id: sent.length };
          },
        },
      },
    },
  });
  const content = `import { send } from 'host:mail';
/** Welcomes a user. */
export default async function welcome(args: { to: string }): Promise<number> {
  const { id } = await send({ to: args.to });
  return id;
}
`;
  await kernel.call('write_file', { path: 'tools/welcome.ts', content });
  assert.equal(await kernel.exec('tools/welcome.ts', { to: 'ann' }), 1);
  // A bug: the error did not name the function, and had no next step.
  await assert.rejects(kernel.exec('tools/welcome.ts', { to: 'eve' }), (error) => {
    assert.equal(error.message, '`host:mail/send` failed: eve gets no mail');
    assert.match(error.help, /the application defines `host:mail\/send`/);
    return true;
  });
  await assert.rejects(kernel.exec('tools/welcome.ts', { to: 5 }));
  assert.deepEqual(sent, ['ann']);
});

for (const kind of ['memory', 'node']) {
  test(`the application keeps the tools: ${kind}`, { skip }, async (t) => {
    const place = project(t, { config: EXPLORE });
    const vfs = kind === 'memory' ? createMemoryVFS() : createNodeVFS(join(place.directory, '..', 'kept'));
    const open = () => new TGP({ configFile: place.configFile, env: place.env, vfs });
    const first = open();
    await first.call('write_file', { path: 'tools/math/fib.ts', content: FIB });
    assert.equal(await first.exec('tools/math/fib.ts', { n: 10 }), 55);
    await first.shutdown();
    assert.equal(await vfs.readFile('tools/math/fib.ts'), FIB);
    const second = open();
    assert.equal(await second.exec('tools/math/fib.ts', { n: 7 }), 13);
    await second.shutdown();
  });
}

test('the agent of the kernel works on a task', { skip }, async (t) => {
  const turns = [
    [{ type: 'tool_call', toolName: 'fs_list', callId: '1', arguments: { path: '.' } }],
    [{ type: 'text', value: 'There is a configuration.' }],
  ];
  const { kernel, directory } = realKernel(t, { files: { 'model.json': JSON.stringify(turns) } });
  const run = kernel.run({ task: 'look around', provider: `script:${join(directory, 'model.json')}` });
  const events = [];
  for await (const event of run) events.push(event);
  assert.match(JSON.stringify(events), /There is a configuration/);
  assert.equal(typeof (await run.summary), 'object');
});

test('nothing is left after SIGKILL of the application', { skip }, async (t) => {
  const place = project(t, { config: { ...EXPLORE, sandbox: { cpuMs: 60_000, wallMs: 60_000 } } });
  const content = '/** Never ends. */\nexport default function endless(): number {\n  let n = 0;\n  while (n >= 0) n += 1;\n  return n;\n}\n';
  const source = `
    import { TGP } from '@tgp/core';
    const kernel = new TGP({ configFile: ${JSON.stringify(place.configFile)} });
    await kernel.call('write_file', { path: 'tools/endless.ts', content: ${JSON.stringify(content)} });
    const run = kernel.exec('tools/endless.ts');
    console.log('running');
    await run;`;
  const host = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    cwd: new URL('../..', import.meta.url),
    env: place.env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(host.stdout, 'data');
  await new Promise((resolve) => setTimeout(resolve, 500));
  const family = descendants(host.pid);
  assert.ok(family.length > 1, `${family}`);
  host.kill('SIGKILL');
  await once(host, 'exit');
  await until(() => !family.some(isAlive));
});

/** The processes below one. */
function descendants(pid) {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'));
  const children = threads.join(' ').split(' ').filter(Boolean).map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}
